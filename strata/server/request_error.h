#pragma once

#include <string>
#include <utility>

#include "strata/base/error.h"

namespace strata::server {

// What is wrong with a request, with what an API's error object has room for beyond an Error: the
// one class besides Error, since neither part can be told from the message.
class RequestError final : public Error {
 public:
  // `param`: the JSON path at fault ("messages[2].content"), empty for none.
  // `api_code`: the API's word for it, empty for none. `status`: 0 takes that of `code`.
  RequestError(ErrorCode code, std::string message, std::string param, std::string api_code = "",
               int status = 0)
      : Error(code, std::move(message)),
        param_(std::move(param)),
        api_code_(std::move(api_code)),
        status_(status) {}

  const std::string& param() const { return param_; }
  const std::string& api_code() const { return api_code_; }
  int status() const { return status_; }

 private:
  std::string param_;
  std::string api_code_;
  int status_;
};

// A field that is missing, of the wrong type or out of range: 400.
[[noreturn]] void refuse_field(std::string path, std::string message);
// A field that is well-formed and not handled here: 400.
[[noreturn]] void unsupported_field(std::string path, std::string message);

}  // namespace strata::server

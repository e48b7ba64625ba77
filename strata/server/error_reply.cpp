#include "strata/server/error_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"

namespace strata::server {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

int status_of(const Error& error) {
  const auto* request_error = dynamic_cast<const RequestError*>(&error);
  if (request_error != nullptr && request_error->status() != 0) return request_error->status();
  return http_status(error.code());
}

Response json_response(int status, std::string body) {
  Response response{status, {{"Content-Type", "application/json"}}, std::move(body)};
  if (status == 503 || status == 429) response.headers.emplace_back("Retry-After", "1");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

void refuse_field(std::string path, std::string message) {
  throw RequestError(ErrorCode::kInvalidArgument, format("{}: {}", path, message), path);
}

void unsupported_field(std::string path, std::string message) {
  throw RequestError(ErrorCode::kUnsupported, format("{}: {}", path, message), path,
                     "unsupported_parameter");
}

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kResourceExhausted:
      return 503;
    case ErrorCode::kCorruptFile:
    case ErrorCode::kDevice:
    case ErrorCode::kDeviceLost:
    case ErrorCode::kInternal:
    case ErrorCode::kIo:
    case ErrorCode::kCancelled:
      break;
  }
  return 500;
}

std::string error_body(int status, const std::string& message, const std::string& param,
                       const std::string& api_code) {
  nlohmann::json error = {
      {"message", message}, {"type", type_of(status)}, {"param", nullptr}, {"code", nullptr}};
  if (!param.empty()) error["param"] = param;
  if (!api_code.empty()) error["code"] = api_code;
  const nlohmann::json body = {{"error", error}};
  // A message may quote a client's bytes.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Response error_response(int status, const std::string& message, const std::string& api_code) {
  return json_response(status, error_body(status, message, "", api_code));
}

Response error_response(const Error& error, const std::string& request_id,
                        std::span<const std::string> private_folders) {
  const int status = status_of(error);
  std::string message = error.what();
  if (status >= 500) message = without_folders(std::move(message), private_folders);
  if (status == 500) message += format(" (request {})", request_id);
  const auto* request_error = dynamic_cast<const RequestError*>(&error);
  if (request_error == nullptr) return json_response(status, error_body(status, message, "", ""));
  return json_response(
      status, error_body(status, message, request_error->param(), request_error->api_code()));
}

std::string without_folders(std::string text, std::span<const std::string> folders) {
  for (const std::string& folder : folders) {
    if (folder.empty() || folder == "/") continue;
    const std::string prefix = folder + "/";
    for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) {
      text.erase(at, prefix.size());
    }
  }
  return text;
}

}  // namespace strata::server

#include "strata/model/arch/registry.h"

#include <array>
#include <string>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"
#include "strata/model/arch/qwen4exp.h"

namespace strata::model {
namespace {

constexpr std::array<ArchitectureEntry, 1> kArchitectures = {{
    {"qwen4exp", read_qwen4exp},
}};

}  // namespace

const ArchitectureEntry& find_architecture(const gguf::Model& file) {
  const auto name = file.metadata().find_string("general.architecture");
  std::string known;
  for (const ArchitectureEntry& entry : kArchitectures) {
    if (name == entry.name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorCode::kUnsupported,
              format("{}: the architecture {} is not supported by this version ({} is)",
                     file.metadata().file(), gguf::escaped(name.value_or("not given")), known));
}

}  // namespace strata::model

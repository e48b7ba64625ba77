#include "strata/memory/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::memory {
namespace {

constexpr std::array<std::pair<Phase, const char*>, 5> kPhases = {{{kLoad, "load"},
                                                                   {kPrompt, "prompt"},
                                                                   {kDecode, "decode"},
                                                                   {kDraftPrompt, "draft-prompt"},
                                                                   {kRestore, "restore"}}};

}  // namespace

std::string phases_text(uint8_t phases) {
  if (phases == kAlways) return "always";
  std::string text;
  for (const auto& [phase, name] : kPhases) {
    if ((phases & phase) != 0) text += format("{}{}", text.empty() ? "" : "+", name);
  }
  return text;
}

PlanLineId Plan::add(Line line) {
  line.id = PlanLineId(static_cast<int32_t>(lines_.size()));
  lines_.push_back(std::move(line));
  return lines_.back().id;
}

Bytes Plan::peak(DeviceId where) const {
  Bytes best = 0;
  for (const auto& [phase, name] : kPhases) best = std::max(best, peak(where, phase));
  return best;
}

Bytes Plan::peak(DeviceId where, Phase phase) const {
  Bytes sum = 0;
  for (const Line& line : lines_) {
    const bool counts = line.phases == kAlways || (line.phases & phase) != 0;
    if (line.where == where && !line.mapped && counts) sum += line.bytes;
  }
  return sum;
}

Bytes Plan::mapped(DeviceId where) const {
  Bytes sum = 0;
  for (const Line& line : lines_) sum += line.where == where && line.mapped ? line.bytes : 0;
  return sum;
}

void Plan::require(DeviceId where, Bytes budget, const std::string& hint) const {
  const Bytes need = peak(where);
  if (need <= budget) return;
  throw Error(
      ErrorCode::kResourceExhausted,
      format("the plan needs {} ({} B) of {}, {} ({} B) are available; {}\n{}", bytes_text(need),
             need, where.value == 0 ? std::string("host memory") : format("device {}", where.value),
             bytes_text(budget), budget, hint, table()));
}

std::string Plan::table() const {
  std::string text;
  Bytes total = 0, mapped_total = 0;
  for (const Line& line : lines_) {
    text += format("  {:<12} {:<24} {:>11}{}  {}\n", line.owner, line.name, bytes_text(line.bytes),
                   line.mapped ? " (file)" : "       ", line.formula);
    (line.mapped ? mapped_total : total) += line.bytes;
  }
  text += format("  {:<12} {:<24} {:>11}         and {} mapped from files\n", "total", "",
                 bytes_text(total), bytes_text(mapped_total));
  return text;
}

std::string bytes_text(Bytes bytes) {
  constexpr std::array<std::pair<Bytes, const char*>, 3> kUnits = {
      {{Bytes{1} << 30, "GiB"}, {Bytes{1} << 20, "MiB"}, {Bytes{1} << 10, "KiB"}}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes >= size) {
      return format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(size), unit);
    }
  }
  return format("{} B", bytes);
}

}  // namespace strata::memory

#include "strata/model/staged_table.h"

namespace strata::model {

StagedTable::StagedTable(device::Device& device, memory::Plan& plan, const std::string& name,
                         const std::string& formula, Bytes bytes)
    : device_(device), bytes_(bytes) {
  host_line_ = plan.add({.owner = "engine",
                         .name = name + " (host)",
                         .formula = formula,
                         .where = device::kHostId,
                         .bytes = bytes});
  work_line_ = plan.add(
      {.owner = "engine", .name = name, .formula = formula, .where = device.id(), .bytes = bytes});
}

void StagedTable::allocate() {
  host_ = value_or_throw(device_.allocate_staging(host_line_, bytes_));
  work_ = value_or_throw(device_.allocate(work_line_, bytes_, device_.work_memory()));
}

Bytes StagedTable::offset(const void* first) const {
  return static_cast<Bytes>(static_cast<const std::byte*>(first) - host_.data());
}

void StagedTable::upload(device::Stream& stream, const void* first, Bytes n) const {
  if (n == 0) return;
  value_or_throw(
      stream.copy(work_.view().part(offset(first), n), host_.view().part(offset(first), n)));
}

void StagedTable::download(device::Stream& stream, const void* first, Bytes n) const {
  if (n == 0) return;
  value_or_throw(
      stream.copy(host_.view().part(offset(first), n), work_.view().part(offset(first), n)));
}

}  // namespace strata::model

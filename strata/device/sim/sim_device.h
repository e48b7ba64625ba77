#pragma once

#include <chrono>
#include <memory>

#include "strata/device/device.h"
#include "strata/device/sim/sim_card.h"

namespace strata::device {

class SimOrder;

// Host memory posing as a card: so many bytes and no more, calls fail by rule (sim_faults.h);
// memory is full of NaN (bytes 0xff) when it is new; queued work runs only at a wait, in one of the
// legal orders, by the CPU's kernels. Memory of the card itself is closed to the host: touching it
// but in queued work crashes. Freeing memory, an event or a graph that queued work names aborts.
// Sims that share an order belong to one machine: they may wait for each other and copy between
// each other. One thread at a time uses them all, allocations included.
std::unique_ptr<Device> make_sim_device(DeviceId id, const SimCard& card,
                                        std::shared_ptr<SimOrder> order,
                                        const DeviceOptions& options);
std::shared_ptr<SimOrder> make_sim_order(uint64_t seed);

// What the work that has run so far would have taken on the card: its streams side by side, each
// launch and copy priced by the rates and times of the SimCard.
std::chrono::nanoseconds sim_time(const Device& sim);

}  // namespace strata::device

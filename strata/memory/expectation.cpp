#include "strata/memory/expectation.h"

#include <algorithm>
#include <cmath>

#include "strata/base/format.h"

namespace strata::memory {
namespace {

// Of a memory's rate, what a step reaches: docs/performance.md.
constexpr double kReached = 0.7;
// Products a second that go with each byte a second of memory, for prompts. The host's: 225 GMAC/s
// a core where two cores read 62 GB/s, less what is not a product. Cards: int8 tensor cores of the
// cards of machine files reach 150 to 330; a third of that.
constexpr double kHostMacsPerByte = 5, kCardMacsPerByte = 60;
// Products for each byte of a weight of about 4.5 bits.
constexpr double kMacsPerWeightByte = 1.8;
// A card's layer that needs the host in between: activations there, results back, two events.
constexpr double kRoundTripSeconds = 30e-6;

class Rates {
 public:
  explicit Rates(const Machine& machine) : machine_(machine) {}

  const Card* card(DeviceId where) const {
    return where.value > 0 ? &machine_.cards[static_cast<size_t>(where.value - 1)] : nullptr;
  }
  double memory(DeviceId where) const {
    const Card* c = card(where);
    return kReached * (c ? c->memory_rate : machine_.ram_rate);
  }
  double macs(DeviceId where) const {
    const Card* c = card(where);
    return c ? kCardMacsPerByte * c->memory_rate : kHostMacsPerByte * machine_.ram_rate;
  }
  // Experts that lie in host memory and whose layer is computed at `where`: the host's threads and
  // the link, which both read host memory.
  double host_experts(DeviceId where) const {
    const Card* c = card(where);
    const double host = kReached * machine_.ram_rate;
    return c ? std::min(machine_.ram_rate, host + kReached * c->link_rate) : host;
  }
  double storage() const { return machine_.storage_rate; }

 private:
  const Machine& machine_;
};

// Seconds for bytes; infinite if there is something to read and the rate is unknown.
double seconds(double bytes, double rate) {
  if (bytes <= 0) return 0;
  return rate > 0 ? bytes / rate : INFINITY;
}

struct LayerShares {
  double card = 0, storage = 0;  // of the expert reads; RAM has the rest
};

}  // namespace

int ExpertHomes::slots(int layer) const {
  int n = 0;
  for (const StageSlots& stage : stages) {
    for (size_t i = 0; i < stage.layers.size(); ++i)
      n += stage.layers[i] == layer ? stage.slots[i] : 0;
  }
  return n;
}

Expectation expect(const PlanSource& model, const Machine& machine, const Placement& placement,
                   const ExpertHomes& homes, const ExpertProfile* profile) {
  const Rates rates(machine);
  const int n_experts = model.n_experts(), chunk = std::max(placement.chunk, 1);
  const auto distinct = [&](double rows) {
    return n_experts * (1 - std::pow(1 - static_cast<double>(model.top_k()) / n_experts, rows));
  };
  Expectation result{.basis = profile ? "the profile" : "published values for this family"};
  double decode = 0, prompt = 0;
  for (const Stage& stage : placement.stages) {
    const DeviceId where = stage.where;
    for (int l = stage.first_layer; l < stage.end_layer; ++l) {
      const auto in_memory = homes.in_memory[static_cast<size_t>(l)];
      const LayerShares share{.card = hit_rate(profile, l, homes.slots(l), n_experts),
                              .storage = 1 - hit_rate(profile, l, in_memory, n_experts)};
      result.hit_rate += share.card / model.n_layers();
      result.storage_rate += share.storage / model.n_layers();
      const double dense = static_cast<double>(model.dense_bytes(l));
      const double blob = static_cast<double>(model.blob_bytes(l));

      const double read = model.top_k() * blob;
      if (where.value > 0 && share.card < 1) decode += kRoundTripSeconds;
      decode += seconds(dense, rates.memory(where)) +
                seconds(share.storage * read, rates.storage()) +
                std::max(seconds(share.card * read, rates.memory(where)),
                         seconds((1 - share.card) * read, rates.host_experts(where)));

      // A chunk reads each needed expert once, while the layer before is computed.
      const double wanted = distinct(chunk) * blob;
      const double absent = wanted * (1 - static_cast<double>(homes.slots(l)) / n_experts);
      const double stored = wanted * (1 - static_cast<double>(in_memory) / n_experts);
      const Card* card = rates.card(where);
      const double fetched =
          std::max(card ? seconds(absent, card->link_rate) : seconds(wanted, rates.memory(where)),
                   seconds(stored, rates.storage()));
      const double products = chunk * kMacsPerWeightByte * (dense + read);
      prompt += std::max(fetched, seconds(products, rates.macs(where)));
    }
  }
  decode += seconds(static_cast<double>(model.head_bytes()), rates.memory(placement.head));
  const auto per_second = [](double rows, double s) {
    return s > 0 && std::isfinite(s) ? rows / s : 0;
  };
  result.decode_tokens_per_s = per_second(1, decode);
  result.prompt_tokens_per_s = per_second(chunk, prompt);
  return result;
}

}  // namespace strata::memory

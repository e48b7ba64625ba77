#include "strata/wire/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::wire {
namespace {

[[noreturn]] void bad(std::string_view what) {
  throw Error(ErrorCode::kCorruptFile, format("broken message between the processes: {}", what));
}

// One description of each message serves both directions: fields(archive, message) names the
// members in order, and the archive writes or reads them.
template <class Archive, class T>
void fields(Archive& a, T& m) {
  using M = std::remove_const_t<T>;
  if constexpr (std::same_as<M, LogitBias>) {
    a(m.id, m.bias);
  } else if constexpr (std::same_as<M, Sampling>) {
    a(m.temperature, m.top_k, m.top_p, m.min_p, m.presence_penalty, m.frequency_penalty,
      m.repetition_penalty, m.repetition_window, m.seed, m.logit_bias);
  } else if constexpr (std::same_as<M, Submit>) {
    a(m.ids, m.sampling, m.stops, m.stop_ids, m.max_tokens, m.sent, m.boundaries, m.grammar,
      m.reasoning, m.n_top_logprobs);
  } else if constexpr (std::same_as<M, Reasoning>) {
    a(m.open, m.begin, m.close, m.budget, m.wrap_up);
  } else if constexpr (std::same_as<M, Cancel> || std::same_as<M, Shutdown>) {
    // nothing
  } else if constexpr (std::same_as<M, Progress>) {
    a(m.done, m.total, m.cached);
  } else if constexpr (std::same_as<M, Tokens>) {
    a(m.ids, m.bytes, m.logprobs);
  } else if constexpr (std::same_as<M, Logprob>) {
    a(m.id, m.logprob);
  } else if constexpr (std::same_as<M, TokenLogprobs>) {
    a(m.chosen, m.top);
  } else if constexpr (std::same_as<M, Usage>) {
    a(m.prompt_tokens, m.completion_tokens, m.cached_tokens, m.reasoning_tokens);
  } else if constexpr (std::same_as<M, Timings>) {
    a(m.queue_ms, m.prompt_ms, m.decode_ms, m.draft_ms);
  } else if constexpr (std::same_as<M, Drafts>) {
    a(m.passes, m.guessed, m.right);
  } else if constexpr (std::same_as<M, Finished>) {
    a(m.reason, m.usage, m.timings, m.drafts, m.stop);
  } else if constexpr (std::same_as<M, Failed>) {
    a(m.code, m.message);
  } else if constexpr (std::same_as<M, Limits>) {
    a(m.n_context, m.max_prompt_tokens, m.n_slots, m.n_vocab);
  } else if constexpr (std::same_as<M, Ready>) {
    a(m.limits, m.memory);
  } else if constexpr (std::same_as<M, MemoryPlan>) {
    a(m.devices, m.storage);
  } else if constexpr (std::same_as<M, PlanDevice>) {
    a(m.name, m.budget, m.reserve, m.peak, m.used, m.n_expert_slots, m.lines);
  } else if constexpr (std::same_as<M, PlanLine>) {
    a(m.owner, m.name, m.formula, m.bytes, m.phases, m.mapped);
  } else if constexpr (std::same_as<M, ExpertReads>) {
    a(m.card_hits, m.card_misses, m.ram_hits, m.ram_misses, m.ahead, m.bytes, m.swaps);
  } else if constexpr (std::same_as<M, Work>) {
    a(m.prompt_tokens, m.cached_tokens, m.answer_tokens, m.steps, m.failed_steps, m.drafts, m.masks,
      m.mask_ns, m.experts);
  } else if constexpr (std::same_as<M, Pulse>) {
    a(m.phase, m.wait, m.step_ms, m.step_rows, m.n_running, m.n_waiting, m.n_kept, m.resident,
      m.anonymous, m.work, m.features, m.degraded);
  } else if constexpr (std::same_as<M, FeatureTrips>) {
    a(m.name, m.n_trips);
  } else {
    static_assert(std::same_as<M, Leaving>);
    a(m.code, m.message, m.hang);
  }
}

template <class E>
constexpr uint8_t last_of() {
  if constexpr (std::same_as<E, Reason>) return static_cast<uint8_t>(Reason::kCancelled);
  if constexpr (std::same_as<E, ErrorCode>) return static_cast<uint8_t>(ErrorCode::kCancelled);
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
constexpr auto bits_of(T value) {
  if constexpr (std::same_as<T, float>) return std::bit_cast<uint32_t>(value);
  if constexpr (std::same_as<T, double>) return std::bit_cast<uint64_t>(value);
  if constexpr (std::integral<T>) return static_cast<std::make_unsigned_t<T>>(value);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class... Ts>
  void operator()(const Ts&... values) {
    (one(values), ...);
  }

  template <class T>
  void one(const T& value) {
    if constexpr (std::same_as<T, bool> || std::is_enum_v<T>) {
      number(static_cast<uint8_t>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      number(value);
    } else if constexpr (std::same_as<T, std::string>) {
      number(static_cast<uint32_t>(value.size()));
      out_.append(value);
    } else if constexpr (IsOptional<T>::value) {
      number(static_cast<uint8_t>(value.has_value()));
      if (value) one(*value);
    } else if constexpr (IsVector<T>::value) {
      number(static_cast<uint32_t>(value.size()));
      for (const auto& member : value) one(member);
    } else {
      fields(*this, value);
    }
  }

 private:
  template <class T>
  void number(T value) {
    const auto bits = bits_of(value);
    std::array<char, sizeof(bits)> bytes;
    for (size_t i = 0; i < sizeof(bits); ++i) bytes[i] = static_cast<char>(bits >> (8 * i) & 0xff);
    out_.append(bytes.data(), bytes.size());
  }

  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <class... Ts>
  void operator()(Ts&... values) {
    (one(values), ...);
  }

  template <class T>
  void one(T& value) {
    if constexpr (std::same_as<T, bool>) {
      const uint8_t byte = number<uint8_t>();
      if (byte > 1) bad(format("a flag is {}", byte));
      value = byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      const uint8_t byte = number<uint8_t>();
      if (byte > last_of<T>()) bad(format("a code is {}", byte));
      value = static_cast<T>(byte);
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = number<T>();
    } else if constexpr (std::same_as<T, std::string>) {
      value = std::string(take(number<uint32_t>()));
    } else if constexpr (IsOptional<T>::value) {
      bool present = false;
      one(present);
      if (present) one(value.emplace());
    } else if constexpr (IsVector<T>::value) {
      // A member takes a byte at least, so a lying count costs no more memory than the frame's
      // own size times that of a member; growth is by what has been read.
      const uint32_t count = number<uint32_t>();
      if (count > in_.size()) bad(format("a list of {} in {} bytes", count, in_.size()));
      value.clear();
      for (uint32_t i = 0; i < count; ++i) one(value.emplace_back());
    } else {
      fields(*this, value);
    }
  }

  void finish() const {
    if (!in_.empty()) bad(format("{} bytes too many", in_.size()));
  }

 private:
  std::string_view take(size_t size) {
    if (size > in_.size()) bad(format("{} bytes needed, {} left", size, in_.size()));
    const std::string_view bytes = in_.substr(0, size);
    in_.remove_prefix(size);
    return bytes;
  }

  template <class T>
  T number() {
    using Bits = decltype(bits_of(T{}));
    const std::string_view bytes = take(sizeof(Bits));
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(Bits); ++i)
      bits |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    if constexpr (std::floating_point<T>) {
      const T value = std::bit_cast<T>(static_cast<Bits>(bits));
      if (std::isnan(value)) bad("a number is NaN");
      return value;
    } else {
      return static_cast<T>(bits);
    }
  }

  std::string_view in_;
};

// Types on the wire: commands from 1, events from 64, each in the order of its variant, which only
// ever grows at the end within one version.
constexpr uint16_t kFirstCommand = 1;
constexpr uint16_t kFirstEvent = 64;

template <class Variant>
void encode_variant(uint16_t first_type, uint32_t engine, RequestId request, const Variant& message,
                    std::string& out) {
  const size_t begin = out.size();
  Writer writer(out);
  const auto type = static_cast<uint16_t>(first_type + message.index());
  writer(uint32_t{0}, kVersion, type, engine, request);
  STRATA_CHECK(out.size() - begin == kHeaderBytes);
  std::visit([&](const auto& m) { writer.one(m); }, message);
  const size_t bytes = out.size() - begin - kHeaderBytes;
  if (bytes > kMaxPayloadBytes) {
    out.resize(begin);
    throw Error(ErrorCode::kUnsupported,
                format("a message of {} bytes between the processes, the limit is {}", bytes,
                       kMaxPayloadBytes));
  }
  std::string length;
  Writer(length).one(static_cast<uint32_t>(bytes));
  std::ranges::copy(length, out.begin() + static_cast<std::ptrdiff_t>(begin));
}

template <class Variant, size_t I = 0>
Variant decode_variant(uint16_t first_type, const Frame& frame, std::string_view payload) {
  if constexpr (I == std::variant_size_v<Variant>) {
    bad(format("type {}", frame.type));
  } else {
    if (frame.type != first_type + I)
      return decode_variant<Variant, I + 1>(first_type, frame, payload);
    std::variant_alternative_t<I, Variant> message;
    Reader reader(payload);
    reader.one(message);
    reader.finish();
    return message;
  }
}

}  // namespace

void encode(uint32_t engine, RequestId request, const Command& command, std::string& out) {
  encode_variant(kFirstCommand, engine, request, command, out);
}

void encode(uint32_t engine, RequestId request, const Event& event, std::string& out) {
  encode_variant(kFirstEvent, engine, request, event, out);
}

Command decode_command(const Frame& frame, std::string_view payload) {
  return decode_variant<Command>(kFirstCommand, frame, payload);
}

Event decode_event(const Frame& frame, std::string_view payload) {
  return decode_variant<Event>(kFirstEvent, frame, payload);
}

std::optional<Frame> FrameReader::next(std::string_view& payload) {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  Frame frame;
  if (rest.size() >= kHeaderBytes) {
    Reader reader(rest.substr(0, kHeaderBytes));
    reader(frame.bytes, frame.version, frame.type, frame.engine, frame.request);
    if (frame.version != kVersion)
      throw Error(ErrorCode::kUnsupported,
                  format("message version {}, this program speaks {}", frame.version, kVersion));
    if (frame.bytes > kMaxPayloadBytes) bad(format("a payload of {} bytes", frame.bytes));
  }
  if (rest.size() < kHeaderBytes || rest.size() - kHeaderBytes < frame.bytes) {
    // Only here, where nothing of buffer_ is lent out.
    buffer_.erase(0, taken_);
    taken_ = 0;
    return std::nullopt;
  }
  payload = rest.substr(kHeaderBytes, frame.bytes);
  taken_ += kHeaderBytes + frame.bytes;
  return frame;
}

}  // namespace strata::wire

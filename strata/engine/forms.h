#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "strata/base/error.h"
#include "strata/text/grammar/token_masks.h"
#include "strata/text/tokenizer.h"

namespace strata::engine {

// A grammar on its way to be followed.
struct Form {
  std::atomic<bool> done = false;  // then one of these is set, and neither changes any more
  std::shared_ptr<text::TokenMasks> masks;
  ErrorCode code = ErrorCode::kInternal;
  std::string error;
  size_t table_bytes = 0;  // of the compiled grammar
};

// Compiles the grammars of requests on a thread of its own, which exists from the first one on,
// since that may take a second and no answer may wait for it. What nobody waits for any more is not
// compiled. Keeps the last ones, and of those in use and kept together no more than so many bytes
// of tables: beyond them a grammar waits until requests have ended, but for the only one. The masks
// of a grammar that is followed come on top, up to kMaxMaskBytes each. One thread at a time asks.
class Forms {
 public:
  struct Limits {
    size_t max_kept = 16;
    size_t max_table_bytes = size_t{256} << 20;
  };
  static constexpr size_t kMaxMaskBytes = size_t{16} << 20;

  // The tokenizer outlives it. `n_vocab`: tokens that the model has logits for.
  Forms(const text::Tokenizer& tokenizer, int32_t n_vocab, const Limits& limits);
  Forms(const text::Tokenizer& tokenizer, int32_t n_vocab) : Forms(tokenizer, n_vocab, Limits()) {}
  ~Forms();
  Forms(const Forms&) = delete;
  Forms& operator=(const Forms&) = delete;

  // Owners: each request that follows the grammar, and this as long as it is among the last.
  std::shared_ptr<const Form> ask(const std::string& gbnf);

  // Grammars that were compiled, whatever came of it; bytes of tables held. Any thread.
  uint64_t n_compiled() const;
  size_t table_bytes() const;

 private:
  struct Entry {
    std::string gbnf;
    std::shared_ptr<Form> form;
    bool wanted() const { return form.use_count() > 1; }  // by a request
    bool done() const { return form->done.load(std::memory_order_acquire); }
  };

  void run();
  // The one that has waited longest and may be compiled now.
  const Entry* next_locked();
  bool any_waits_locked() const;
  size_t table_bytes_locked() const;
  void trim_locked(size_t room_bytes);
  // True: asking again would end the same.
  bool compile(const std::string& gbnf, Form& form);

  const text::Tokenizer& tokenizer_;
  const int32_t n_vocab_;
  const Limits limits_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::list<Entry> entries_;  // the last one asked for first, those that are not done by arrival
  uint64_t n_compiled_ = 0;
  bool ending_ = false;

  std::shared_ptr<const text::TokenTrie> trie_;  // the compiling thread's
  std::thread thread_;
};

}  // namespace strata::engine

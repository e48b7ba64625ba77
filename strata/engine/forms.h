#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
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
  std::shared_ptr<const text::TokenMasks> masks;
  ErrorCode code = ErrorCode::kInternal;
  std::string error;
};

// Compiles the grammars of requests on a thread of its own, which exists from the first one on,
// since that may take a second and no answer may wait for it. Keeps the last ones. One thread at a
// time asks.
class Forms {
 public:
  // The tokenizer outlives it. `n_vocab`: tokens that the model has logits for.
  Forms(const text::Tokenizer& tokenizer, int32_t n_vocab)
      : tokenizer_(tokenizer), n_vocab_(n_vocab) {}
  ~Forms();
  Forms(const Forms&) = delete;
  Forms& operator=(const Forms&) = delete;

  // Owners: each request that follows the grammar, and this as long as it is among the last.
  std::shared_ptr<const Form> ask(const std::string& gbnf);

 private:
  struct Entry {
    std::string gbnf;
    std::shared_ptr<Form> form;
  };
  static constexpr size_t kMaxKept = 16;
  static constexpr size_t kMaxMaskBytes = size_t{16} << 20;

  void run();
  void compile(const Entry& entry);

  const text::Tokenizer& tokenizer_;
  const int32_t n_vocab_;
  std::list<Entry> kept_;  // the last one first; the asking thread's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> todo_;  // guarded by mutex_
  bool ending_ = false;     // guarded by mutex_

  std::shared_ptr<const text::TokenTrie> trie_;  // the compiling thread's
  std::thread thread_;
};

}  // namespace strata::engine

#include "strata/engine/forms.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "strata/base/os/thread.h"
#include "strata/text/grammar/gbnf.h"

namespace strata::engine {
namespace {

// How often to look whether requests have let go of their grammars: they do not say so.
constexpr std::chrono::milliseconds kTurn(10);

// What one compiled grammar can take.
constexpr size_t kLargestTable = text::GrammarLimits{}.max_table_entries * sizeof(uint32_t);

}  // namespace

Forms::Forms(const text::Tokenizer& tokenizer, int32_t n_vocab, const Limits& limits)
    : tokenizer_(tokenizer), n_vocab_(n_vocab), limits_(limits) {}

Forms::~Forms() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const Form> Forms::ask(const std::string& gbnf) {
  std::shared_ptr<const Form> form;
  {
    const std::lock_guard lock(mutex_);
    auto entry = std::ranges::find(entries_, gbnf, &Entry::gbnf);
    if (entry == entries_.end()) {
      entries_.push_front({gbnf, std::make_shared<Form>()});
      entry = entries_.begin();
    } else if (entry->done()) {
      entries_.splice(entries_.begin(), entries_, entry);
    }
    form = entry->form;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
  return form;
}

uint64_t Forms::n_compiled() const {
  const std::lock_guard lock(mutex_);
  return n_compiled_;
}

size_t Forms::table_bytes() const {
  const std::lock_guard lock(mutex_);
  return table_bytes_locked();
}

size_t Forms::table_bytes_locked() const {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.done() ? entry.form->table_bytes : 0;
  return bytes;
}

// Forgets those that no request has any more: what is not done, and the oldest beyond the limits.
void Forms::trim_locked(size_t room_bytes) {
  std::erase_if(entries_, [](const Entry& entry) { return !entry.done() && !entry.wanted(); });
  size_t bytes = table_bytes_locked();
  for (auto it = entries_.end(); it != entries_.begin();) {
    --it;
    const bool fits =
        entries_.size() <= limits_.max_kept && bytes + room_bytes <= limits_.max_table_bytes;
    if (fits) return;
    if (!it->done() || it->wanted()) continue;
    bytes -= it->form->table_bytes;
    it = entries_.erase(it);
  }
}

const Forms::Entry* Forms::next_locked() {
  trim_locked(kLargestTable);
  const auto next = std::find_if(entries_.rbegin(), entries_.rend(),
                                 [](const Entry& entry) { return !entry.done(); });
  if (next == entries_.rend()) return nullptr;
  const size_t bytes = table_bytes_locked();
  return bytes == 0 || bytes + kLargestTable <= limits_.max_table_bytes ? &*next : nullptr;
}

bool Forms::any_waits_locked() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return !entry.done(); });
}

void Forms::run() {
  os::set_thread_name("grammar");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || any_waits_locked(); });
    if (ending_) return;
    const Entry* const next = next_locked();
    if (next == nullptr) {
      changed_.wait_for(lock, kTurn, [this] { return ending_; });
      continue;
    }
    const std::string gbnf = next->gbnf;
    std::shared_ptr<Form> form = next->form;
    lock.unlock();
    const bool lasting = compile(gbnf, *form);
    lock.lock();
    ++n_compiled_;
    if (!lasting) std::erase_if(entries_, [&](const Entry& entry) { return entry.form == form; });
    form->done.store(true, std::memory_order_release);
    form.reset();  // so that it is not taken for one that is wanted
    trim_locked(0);
  }
}

bool Forms::compile(const std::string& gbnf, Form& form) {
  try {
    if (trie_ == nullptr)
      trie_ = std::make_shared<const text::TokenTrie>(text::make_token_trie(tokenizer_, n_vocab_));
    form.masks = std::make_shared<text::TokenMasks>(text::compile(text::parse_gbnf(gbnf)), trie_,
                                                    kMaxMaskBytes);
    form.table_bytes = form.masks->grammar().n_bytes();
    return true;
  } catch (const Error& e) {
    form.code = e.code();
    form.error = e.what();
    return true;
  } catch (const std::bad_alloc&) {
    form.code = ErrorCode::kResourceExhausted;
    form.error = "not enough memory for the grammar";
  } catch (const std::exception& e) {
    form.error = e.what();
  }
  return false;
}

}  // namespace strata::engine

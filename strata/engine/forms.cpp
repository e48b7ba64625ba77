#include "strata/engine/forms.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "strata/base/os/thread.h"
#include "strata/text/grammar/gbnf.h"

namespace strata::engine {

Forms::~Forms() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const Form> Forms::ask(const std::string& gbnf) {
  const auto found = std::ranges::find(kept_, gbnf, &Entry::gbnf);
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->form;
  }
  kept_.push_front({gbnf, std::make_shared<Form>()});
  if (kept_.size() > kMaxKept) kept_.pop_back();
  {
    const std::lock_guard lock(mutex_);
    todo_.push_back(kept_.front());
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
  return kept_.front().form;
}

void Forms::run() {
  os::set_thread_name("grammar");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !todo_.empty(); });
    if (ending_) return;
    const Entry entry = std::move(todo_.front());
    todo_.pop_front();
    lock.unlock();
    compile(entry);
    lock.lock();
  }
}

void Forms::compile(const Entry& entry) {
  Form& form = *entry.form;
  try {
    if (trie_ == nullptr)
      trie_ = std::make_shared<const text::TokenTrie>(text::make_token_trie(tokenizer_, n_vocab_));
    form.masks = std::make_shared<const text::TokenMasks>(
        text::compile(text::parse_gbnf(entry.gbnf)), trie_, kMaxMaskBytes);
  } catch (const Error& e) {
    form.code = e.code();
    form.error = e.what();
  } catch (const std::bad_alloc&) {
    form.code = ErrorCode::kResourceExhausted;
    form.error = "not enough memory for the grammar";
  } catch (const std::exception& e) {
    form.error = e.what();
  }
  form.done.store(true, std::memory_order_release);
}

}  // namespace strata::engine

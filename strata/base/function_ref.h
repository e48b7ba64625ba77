#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace strata {

// A callable seen through two pointers: no heap, no copy. The callable must outlive the reference,
// so this is for parameters, not for members. For function objects; a plain function wants a
// lambda.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  using Call = R (*)(void*, Args...);

  // Implicit on purpose: the caller writes a lambda where a FunctionRef is asked for. The
  // constraint leaves copies to the copy constructor.
  template <class Fn>
  requires(!std::is_same_v<std::remove_cvref_t<Fn>, FunctionRef> &&
           std::is_object_v<std::remove_reference_t<Fn>> && std::is_invocable_r_v<R, Fn&, Args...>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      FunctionRef(Fn&& fn)
      : context_(const_cast<void*>(static_cast<const void*>(std::addressof(fn)))),
        call_([](void* context, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<Fn>*>(context))(std::forward<Args>(args)...);
        }) {}

  // From the two pointers, e.g. after they travelled through atomics.
  FunctionRef(void* where, Call how) : context_(where), call_(how) {}

  R operator()(Args... args) const { return call_(context_, std::forward<Args>(args)...); }

  void* context() const { return context_; }
  Call call() const { return call_; }

 private:
  void* context_;
  Call call_;
};

}  // namespace strata

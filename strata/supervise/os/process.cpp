#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/os/descriptor.h"
#include "strata/supervise/launcher.h"

namespace strata::supervise {
namespace {

constexpr int kEngineFd = 3;

// Runs in the child between fork and exec, where other threads' locks may be held for ever: only
// async-signal-safe calls.
[[noreturn]] void become_engine(int socket, pid_t parent, char* const* argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above took effect.
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Whoever reads the log may go; a line that nobody wants must not end an engine.
  ::signal(SIGPIPE, SIG_IGN);
  const int empty = ::open("/dev/null", O_RDONLY);
  if (empty >= 0 && empty != 0) ::dup2(empty, 0);
  if (socket == kEngineFd)
    ::fcntl(socket, F_SETFD, 0);
  else if (::dup2(socket, kEngineFd) < 0)
    ::_exit(127);
  // A client's connection left open in the engine would never close for the client.
  if (::syscall(SYS_close_range, kEngineFd + 1, ~0U, 0) != 0) {
    const long n = ::sysconf(_SC_OPEN_MAX);
    for (int fd = kEngineFd + 1; fd < n && fd < 65536; ++fd) ::close(fd);
  }
  ::execv(argv[0], argv);
  ::_exit(127);
}

class PosixProcess final : public EngineProcess {
 public:
  PosixProcess(pid_t pid, std::unique_ptr<wire::Transport> transport)
      : pid_(pid), transport_(std::move(transport)) {}
  ~PosixProcess() override {
    if (!exit_) kill();
    // After SIGKILL only a process stuck in the kernel (a dead disk) stays; it is not waited for.
    wait_exit(std::chrono::seconds(5));
  }

  std::unique_ptr<wire::Transport> take_transport() override { return std::move(transport_); }

  std::optional<Exit> wait_exit(std::chrono::milliseconds limit) override {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!exit_) {
      int status = 0;
      const pid_t got = ::waitpid(pid_, &status, WNOHANG);
      if (got == pid_ && WIFEXITED(status)) exit_ = Exit{false, WEXITSTATUS(status)};
      if (got == pid_ && WIFSIGNALED(status)) exit_ = Exit{true, WTERMSIG(status)};
      // Not our child any more: someone else reaped it.
      if (got < 0 && errno == ECHILD) exit_ = Exit{false, 70};
      if (exit_ || std::chrono::steady_clock::now() >= deadline) break;
      ::poll(nullptr, 0, 2);
    }
    return exit_;
  }

  void kill() override {
    if (!exit_) ::kill(pid_, SIGKILL);
  }

  int64_t id() const override { return pid_; }

 private:
  const pid_t pid_;
  std::unique_ptr<wire::Transport> transport_;
  std::optional<Exit> exit_;
};

class PosixLauncher final : public Launcher {
 public:
  explicit PosixLauncher(std::vector<std::string> argv) : argv_(std::move(argv)) {}

  std::unique_ptr<EngineProcess> launch(uint32_t incarnation, bool step_down) override {
    if (::access(argv_.at(0).c_str(), X_OK) != 0)
      throw Error(ErrorCode::kIo, format("cannot start {}: {}", argv_[0], os::describe(errno)));
    std::vector<std::string> words = argv_;
    for (const std::string& word : {std::string("--fd"), std::to_string(kEngineFd),
                                    std::string("--incarnation"), std::to_string(incarnation)})
      words.push_back(word);
    if (step_down) words.insert(words.end(), {"--step-down", "1"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    auto [ours, theirs] = os::socket_pair();
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become_engine(theirs.get(), parent, argv.data());
    if (pid < 0)
      throw Error(ErrorCode::kIo,
                  format("cannot start the engine process: {}", os::describe(errno)));
    return std::make_unique<PosixProcess>(pid, wire::socket_transport(std::move(ours)));
  }

 private:
  std::vector<std::string> argv_;
};

}  // namespace

std::unique_ptr<Launcher> process_launcher(std::vector<std::string> argv) {
  return std::make_unique<PosixLauncher>(std::move(argv));
}

}  // namespace strata::supervise

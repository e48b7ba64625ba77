#include "strata/server/routes.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/text.h"
#include "strata/server/api/chat.h"
#include "strata/server/api/completions.h"
#include "strata/server/api/field_table.h"
#include "strata/server/api/health.h"
#include "strata/server/api/messages.h"
#include "strata/server/api/metrics.h"
#include "strata/server/api/models.h"
#include "strata/server/api/props.h"
#include "strata/server/api/responses.h"
#include "strata/server/api/tokenize.h"
#include "strata/server/error_reply.h"
#include "strata/server/generation.h"
#include "strata/server/json.h"
#include "strata/server/page.h"

namespace strata::server {

// An endpoint has one of the functions. Those with a body run on a worker.
struct Route {
  std::string_view path;
  bool is_public = false;  // answered without a key
  Response (*get)(const Services&) = nullptr;
  std::string (*post)(const std::string& body, const Services&) = nullptr;
  Generation (*generate)(const std::string& body, const std::string& request_id,
                         const Services&) = nullptr;

  std::string_view methods() const {
    return get != nullptr ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
  }
};

namespace {

Response json_ok(std::string body) {
  return {200, {{"Content-Type", "application/json"}}, std::move(body)};
}

constexpr std::array kRoutes = {
    Route{.path = "/apply-template", .post = apply_template},
    Route{.path = "/detokenize", .post = detokenize},
    Route{.path = "/health", .is_public = true, .get = health},
    Route{.path = "/metrics", .get = metrics},
    Route{.path = "/openapi.json",
          .is_public = true,
          .get =
              [](const Services& services) {
                return json_ok(dump(openapi(services.config.version)));
              }},
    Route{.path = "/props", .get = props},
    Route{.path = "/slots", .get = slots},
    Route{.path = "/tokenize", .post = tokenize},
    Route{.path = "/v1/chat/completions", .generate = read_chat},
    Route{.path = "/v1/completions", .generate = read_completion},
    Route{.path = "/v1/messages", .generate = read_message},
    Route{.path = "/v1/messages/count_tokens", .post = count_tokens},
    Route{.path = "/v1/models",
          .get = [](const Services& services) { return json_ok(list_models(services)); }},
    Route{.path = "/v1/responses", .generate = read_response},
};

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes)
    if (route.path == path) return &route;
  return nullptr;
}

// Each API has its own form of errors.
Response styled(const std::string& path, const std::string& id, Response error) {
  return path.starts_with("/v1/messages") ? anthropic_error(std::move(error), id) : error;
}

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : page_files())
    if (file.path == path) return &file;
  return nullptr;
}

Response page_response(const PageFile& file) {
  return {200,
          {{"Content-Type", std::string(file.content_type)},
           {"Cache-Control", "no-cache"},
           {"Content-Security-Policy", std::string(kPageSecurityPolicy)},
           {"Referrer-Policy", "no-referrer"}},
          std::string(file.bytes)};
}

Response wrong_method(const Request& request, std::string_view methods) {
  Response response = error_response(
      405, format("{} does not take {}, but {}", request.path, request.method, methods),
      "method_not_allowed");
  response.headers.emplace_back("Allow", methods);
  return response;
}

// "Text/Plain; charset=\"UTF-8\"": text/plain and utf-8.
struct MediaType {
  explicit MediaType(std::string_view text) {
    name = lower(trimmed(text.substr(0, text.find(';'))));
    for (size_t at = text.find(';'); at != std::string_view::npos; at = text.find(';')) {
      text.remove_prefix(at + 1);
      const std::string_view parameter = trimmed(text.substr(0, text.find(';')));
      const size_t equals = parameter.find('=');
      if (equals == std::string_view::npos || lower(parameter.substr(0, equals)) != "charset")
        continue;
      charset = lower(parameter.substr(equals + 1));
      std::erase(charset, '"');
    }
  }
  std::string name, charset;

  // Browsers send the types of forms without asking; a program that forgets to name JSON sends
  // urlencoded (curl) or nothing.
  bool may_be_json() const {
    return name.empty() || name == "application/json" || name.ends_with("+json") ||
           name == "application/x-www-form-urlencoded";
  }
  bool is_utf8() const { return charset.empty() || charset == "utf-8" || charset == "utf8"; }
};

std::optional<Response> refuse_body(const Request& request) {
  const std::string* encoding = request.header("content-encoding");
  if (encoding != nullptr && *encoding != "identity")
    return error_response(415, format("Content-Encoding {} is not taken", *encoding),
                          "unsupported_encoding");
  const std::string* header = request.header("content-type");
  const MediaType type(header == nullptr ? "" : *header);
  if (!type.may_be_json())
    return error_response(415, "Content-Type must be application/json", "unsupported_media_type");
  if (!type.is_utf8())
    return error_response(415, format("charset {} is not taken: JSON is UTF-8", type.charset),
                          "unsupported_charset");
  return std::nullopt;
}

// Runs `work` and turns what it throws into a reply. On a worker.
template <class Work>
void guarded(const std::shared_ptr<Exchange>& exchange, const Route& route,
             const Services& services, const std::string& id, const Work& work) {
  Response response;
  try {
    return work();
  } catch (const Error& e) {
    response = error_response(e, id, services.config.private_folders);
    // The client may be told less.
    if (response.status >= 500) log_info(format("{} {}", id, e.what()));
  } catch (const std::bad_alloc&) {
    response = error_response(503, "not enough memory for this request", "overloaded");
  } catch (const std::exception& e) {
    log_error(format("{} {}", id, e.what()));
    response = error_response(Error(ErrorCode::kInternal, "internal error"), id);
  }
  response = styled(std::string(route.path), id, std::move(response));
  exchange->post([exchange, response = std::move(response)] { exchange->reply(response); });
}

// What a worker does with a request.
void work_on(const std::shared_ptr<Exchange>& exchange, const Route& route,
             const Services& services, const std::string& id, std::string body) {
  guarded(exchange, route, services, id, [&] {
    if (route.post != nullptr) {
      Response response = json_ok(route.post(body, services));
      exchange->post([exchange, response = std::move(response)] { exchange->reply(response); });
      return;
    }
    // std::function copies what it holds, and a generation cannot be copied.
    const auto generation = std::make_shared<Generation>(route.generate(body, id, services));
    exchange->post([exchange, &services, generation] {
      start_generation(exchange, services, std::move(*generation));
    });
  });
}

}  // namespace

Routes::Routes(const Config& config, const Services& services)
    : services_(services), access_(config) {}

std::string_view Routes::known(std::string_view path) const {
  if (const Route* route = find_route(path)) return route->path;
  if (const PageFile* file = find_page_file(path)) return file->path;
  return "other";
}

void Routes::handle(const std::shared_ptr<Exchange>& exchange) const {
  const Request& request = exchange->request();
  const auto refuse = [&](Response error) {
    exchange->reply(styled(request.path, request.id, std::move(error)));
  };
  const Route* route = find_route(request.path);
  const PageFile* file = find_page_file(request.path);
  const std::string_view methods = route != nullptr  ? route->methods()
                                   : file != nullptr ? "GET, HEAD, OPTIONS"
                                                     : "GET, HEAD, POST, OPTIONS";
  const bool is_public = file != nullptr || (route != nullptr && route->is_public);
  const bool is_preflight = request.method == "OPTIONS";
  // A preflight cannot carry a key.
  if (auto refusal = access_.check(request, is_public || is_preflight))
    return refuse(std::move(*refusal));
  exchange->add_headers(access_.cors_headers(request));
  if (is_preflight) return exchange->reply(access_.preflight(request, methods));
  if (route == nullptr && file == nullptr)
    return refuse(error_response(404, format("nothing is at {}", request.path), "not_found"));

  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (file != nullptr)
    return exchange->reply(reads ? page_response(*file) : wrong_method(request, methods));
  if (reads != (route->get != nullptr) || (!reads && request.method != "POST"))
    return refuse(wrong_method(request, methods));
  if (route->get != nullptr) return exchange->reply(route->get(services_));
  if (services_.draining)
    return refuse(error_response(503, "the server is shutting down", "shutting_down"));
  if (auto refusal = refuse_body(request)) return refuse(std::move(*refusal));
  hand_over(exchange, *route);
}

void Routes::hand_over(const std::shared_ptr<Exchange>& exchange, const Route& route) const {
  struct Job {
    std::string id, body;
    BodyShare share;
  };
  Request& request = exchange->request();
  // Copies of a std::function share it; the body is freed with the last.
  const auto job = std::make_shared<Job>(
      Job{request.id, std::move(request.body), std::move(request.body_share)});
  const auto size = job->body.size() >= services_.config.large_body_bytes ? Workers::Size::kLarge
                                                                          : Workers::Size::kSmall;
  const bool taken = services_.workers.run(
      [exchange, job, &route, &services = services_] {
        work_on(exchange, route, services, job->id, std::move(job->body));
      },
      size);
  if (!taken)
    exchange->reply(
        styled(request.path, job->id,
               error_response(429, "too many requests are waiting already", "overloaded")));
}

}  // namespace strata::server

#include "strata/server/json_schema_formats.h"

namespace strata::server {
namespace {

#define STRATA_DATE                                                                                \
  "[1-9]\\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)" \
  "|02-(?:0[1-9]|1\\d|2[0-8]))"
#define STRATA_TIME \
  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define STRATA_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define STRATA_HOST STRATA_LABEL "(?:\\." STRATA_LABEL "){0,5}"
#define STRATA_OCTET "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

struct Format {
  std::string_view name;
  std::string_view pattern;
};

constexpr Format kFormats[] = {
    {"date", STRATA_DATE},
    {"date-time", STRATA_DATE "T" STRATA_TIME},
    {"duration",
     "P(?:\\d{1,4}W|\\d{1,4}D(?:T\\d{1,4}[HMS])?|\\d{1,4}Y(?:\\d{1,4}M)?|\\d{1,4}M|"
     "T(?:\\d{1,4}H(?:\\d{1,4}M)?|\\d{1,4}M(?:\\d{1,4}S)?|\\d{1,4}S))"},
    {"email", "[A-Za-z0-9_+-]{1,30}(?:\\.[A-Za-z0-9_+-]{1,20}){0,1}@" STRATA_LABEL
              "(?:\\." STRATA_LABEL "){1,4}"},
    {"hostname", STRATA_HOST},
    {"ipv4", STRATA_OCTET "(?:\\." STRATA_OCTET "){3}"},
    {"ipv6", "(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"},
    {"time", STRATA_TIME},
    {"uri", "https?://" STRATA_HOST
            "(?::[1-9]\\d{0,3})?(?:/[A-Za-z0-9._~-]{0,60}){0,20}(?:\\?[A-Za-z0-9._~=&-]{0,200})?"
            "(?:#[A-Za-z0-9._~-]{0,60})?"},
    {"uuid", "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"},
};

#undef STRATA_DATE
#undef STRATA_TIME
#undef STRATA_LABEL
#undef STRATA_HOST
#undef STRATA_OCTET

}  // namespace

std::optional<std::string_view> pattern_of_format(std::string_view format) {
  for (const Format& known : kFormats) {
    if (known.name == format) return known.pattern;
  }
  return std::nullopt;
}

}  // namespace strata::server

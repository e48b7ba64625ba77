#pragma once

#include <string_view>

#include "strata/text/jinja/ast.h"
#include "strata/text/jinja/limits.h"

namespace strata::text {

// Errors: kInvalidArgument for text that is no template or is nested too deep, kUnsupported for
// statements that are not there (include, import, extends, block, do ...); all name the line.
TemplateTree parse_template(std::string_view source, const TemplateLimits& limits);

}  // namespace strata::text

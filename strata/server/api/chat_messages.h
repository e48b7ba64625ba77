#pragma once

#include <string>
#include <vector>

#include "strata/server/fields.h"
#include "strata/server/frontend.h"

namespace strata::server {

// Reads "messages". What comes out:
// - roles system, developer (the same), user, assistant, tool; others are refused;
// - leading system messages as one, their texts joined by an empty line; later ones stay where they
//   are (Frontend::chat says how);
// - content is a string or a list of text parts, which are put together without anything between.
//   It may be null or missing in an assistant's message alone. Pictures and sound are refused;
// - tool_calls of an assistant's message: arguments are an object, or a string holding one.
// Errors of all: RequestError naming the path.
std::vector<ChatMessage> read_messages(const Fields& body);

// "role", with developer as system.
std::string read_role(const Fields& message);
// "arguments" of a call.
text::Value read_arguments(const Fields& function);

}  // namespace strata::server

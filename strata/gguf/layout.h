#pragma once

#include "strata/gguf/header.h"

namespace strata::gguf {

// Checks the tensor data of one file against its size and turns Tensor::offset into an offset from
// the start of the file. What holds afterwards: every tensor lies inside the file, none overlap,
// and all bytes of the file belong to header, tensors or padding. Errors: kCorruptFile (cut off,
// overlapping, unclaimed or trailing bytes, several files joined), kUnsupported (the 128-value form
// of Q2_0). header_only: a file that ends where the data should begin is taken as one whose data is
// elsewhere; the table is checked all the same.
void place_tensors(Header& header, const io::ByteSource& source, bool header_only);

}  // namespace strata::gguf

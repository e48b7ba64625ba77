#include "strata/model/ngram.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata::model {
namespace {

// Of Qwen3.8-Flash-Next: 320,001,446 rows.
NgramHash real_hash() {
  NgramHash h{
      .order = 3,
      .heads = 8,
      .eos = 248044,
      .multipliers = {23703573157769, 20109073645365, 8052911324071},
      .sizes = {20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077,
                20000081, 20000093, 20000107, 20000147, 20000153, 20000159, 20000161, 20000171}};
  uint64_t offset = 0;
  for (uint64_t size : h.sizes) {
    h.offsets.push_back(offset);
    offset += size;
  }
  return h;
}

const std::vector<int32_t> kIds = {248045, 846, 198, 9707, 248046, 198, 248044, 12, 34, 56};

// Rows of heads 0, 7, 8 and 15, computed with integers of unlimited size.
struct Expected {
  size_t token;
  int64_t row[4];
};
constexpr Expected kExpected[] = {
    {0, {13981229, 146384625, 173637879, 312970430}},
    {1, {4908448, 159207155, 170314019, 308659387}},
    {2, {4582007, 145212418, 163775156, 317942745}},
    {3, {14498898, 152547667, 167750739, 313254563}},
    {4, {3147092, 154305774, 167585313, 310272537}},
    {6, {16849591, 158125394, 162126929, 306260765}},
    {7, {10272144, 156088582, 166704986, 303933063}},
    {8, {16577802, 143109776, 161405654, 300148647}},
    {9, {11951332, 153967978, 164675291, 305060827}},
};

TEST(NgramHash, RowsOfTheRealModel) {
  const NgramHash h = real_hash();
  EXPECT_EQ(h.offsets.back(), 300001275U);
  std::vector<int64_t> rows;
  h.append_rows(kIds, 0, rows);
  ASSERT_EQ(rows.size(), kIds.size() * 16);
  for (const Expected& e : kExpected) {
    const size_t head[] = {0, 7, 8, 15};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(rows[e.token * 16 + head[i]], e.row[i])
          << "token " << e.token << " head " << head[i];
    }
  }
}

TEST(NgramHash, DoesNotDependOnTheCut) {
  const NgramHash h = real_hash();
  std::vector<int64_t> whole, pieces;
  h.append_rows(kIds, 0, whole);
  for (size_t n = 1; n <= kIds.size(); ++n) {
    h.append_rows(std::span(kIds).first(n), n - 1, pieces);
  }
  EXPECT_EQ(pieces, whole);
}

// An end of text hides what is before it, and itself counts as one to those behind it.
TEST(NgramHash, AnEndOfTextCutsTheHistory) {
  const NgramHash h = real_hash();
  const auto last = [&](std::vector<int32_t> ids) {
    std::vector<int64_t> rows;
    h.append_rows(ids, ids.size() - 1, rows);
    return rows;
  };
  EXPECT_EQ(last({5, 6, 248044, 9}), last({9}));
  EXPECT_EQ(last({5, 248044, 6, 9}), last({6, 9}));
  EXPECT_NE(last({5, 6, 9}), last({6, 9}));
  // The current token being an end of text hides nothing.
  EXPECT_NE(last({5, 6, 248044}), last({248044}));
}

TEST(NgramHash, EveryRowLiesInItsHeadsPart) {
  const NgramHash h = real_hash();
  std::vector<int64_t> rows;
  h.append_rows(kIds, 0, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_GE(rows[i], static_cast<int64_t>(h.offsets[i % 16]));
    EXPECT_LT(rows[i], static_cast<int64_t>(h.offsets[i % 16] + h.sizes[i % 16]));
  }
}

// Orders up to 5 with two heads: each order sees one token more.
TEST(NgramHash, LongerOrders) {
  NgramHash h{.order = 5, .heads = 2, .eos = 0, .multipliers = {3, 5, 7, 11, 13}};
  for (uint64_t i = 0; i < 8; ++i) {
    h.sizes.push_back(1009 + 2 * i);
    h.offsets.push_back(i * 2000);
  }
  std::vector<int64_t> rows;
  const std::vector<int32_t> ids = {40, 30, 20, 10, 1};
  h.append_rows(ids, 4, rows);
  uint64_t mix = 1 * 3;
  std::vector<int64_t> expected;
  const uint64_t terms[] = {10 * 5, 20 * 7, 30 * 11, 40 * 13};
  for (uint64_t order = 0; order < 4; ++order) {
    mix ^= terms[order];
    for (uint64_t head = 2 * order; head < 2 * order + 2; ++head) {
      expected.push_back(static_cast<int64_t>(head * 2000 + mix % (1009 + 2 * head)));
    }
  }
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace strata::model

#include "strata/memory/ram_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "strata/base/error.h"
#include "strata/device/registry.h"
#include "strata/io/file.h"
#include "tests/support/temp_folder.h"

namespace strata::memory {
namespace {

constexpr int kLayers = 3, kExperts = 12;
const BlobShape kSmall{{700, 700, 1300}}, kLarge{{5000, 5000, 900}};

const BlobShape& shape_of(int layer) { return layer == 1 ? kLarge : kSmall; }
std::byte byte_of(int layer, int expert, int part, Bytes i) {
  return static_cast<std::byte>(layer * 91 + expert * 17 + part * 5 + static_cast<int>(i % 13));
}

// The experts of three layers in a file, part by part, as a model file has them.
class Stored {
 public:
  Stored() {
    std::ofstream out(folder_.path("experts"), std::ios::binary);
    out << "something in front";
    uint64_t at = 18;
    for (int l = 0; l < kLayers; ++l) {
      RamPool::Layer layer{.shape = shape_of(l)};
      for (int part = 0; part < 3; ++part) {
        const Bytes n = layer.shape.part[static_cast<size_t>(part)];
        layer.files.part[static_cast<size_t>(part)] = {.file = 0, .offset = at, .stride = n};
        for (int e = 0; e < kExperts; ++e) {
          for (Bytes i = 0; i < n; ++i) out.put(static_cast<char>(byte_of(l, e, part, i)));
        }
        at += kExperts * n;
      }
      layers_.push_back(layer);
    }
    out.close();
    file_ = std::make_unique<io::File>(io::File::open(path()));
  }
  std::string path() const { return folder_.path("experts"); }

  std::unique_ptr<RamPool> pool(Bytes budget, io::DirectReader::Way way) {
    auto pool = std::make_unique<RamPool>(layers_, kExperts, budget, *devices_.front(), plan);
    const io::ByteSource* const file = file_.get();
    pool->allocate({&file, 1}, way);
    return pool;
  }
  void expect_bytes(const ExpertLease& lease, int layer) const {
    ASSERT_FALSE(lease.here.empty());
    for (int e = 0; e < kExperts; ++e) {
      const std::byte* const* parts = lease.parts.row(e);
      const bool here = std::ranges::find(lease.here, ExpertId(e)) != lease.here.end();
      ASSERT_EQ(parts[0] != nullptr, here) << e;
      for (int part = 0; here && part < 3; ++part) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(parts[part]) % BlobShape::kAlign, 0U);
        for (Bytes i = 0; i < shape_of(layer).part[static_cast<size_t>(part)]; ++i) {
          ASSERT_EQ(parts[part][i], byte_of(layer, e, part, i));
        }
      }
    }
  }

  Plan plan;
  ExpertHeat heat{kLayers, kExperts, nullptr};

 private:
  testing::TempFolder folder_;
  std::vector<std::unique_ptr<device::Device>> devices_ = device::make_devices("host", {});
  std::unique_ptr<io::File> file_;
  std::vector<RamPool::Layer> layers_;
};

Bytes bytes_of_all() { return kExperts * (2 * kSmall.bytes() + kLarge.bytes()) + (Bytes{1} << 20); }

class Pool : public ::testing::TestWithParam<io::DirectReader::Way> {};

// Whatever is wanted, in whatever room: the right bytes, and the counts add up.
TEST_P(Pool, GivesEveryExpertInAnyRoom) {
  for (const Bytes budget : {Bytes{70'000}, Bytes{120'000}, Bytes{200'000}, bytes_of_all()}) {
    Stored stored;
    const auto pool = stored.pool(budget, GetParam());
    EXPECT_LE(stored.plan.peak(device::kHostId), budget);
    std::mt19937 random(static_cast<unsigned>(budget));
    uint64_t uses = 0;
    for (int step = 0; step < 120; ++step) {
      const int l = step % kLayers;
      std::vector<ExpertId> wanted, rest;
      std::vector<int32_t> used;
      for (int e = 0; e < kExperts; ++e) {
        if (random() % 3 != 0) continue;
        wanted.emplace_back(e);
        used.push_back(e);
      }
      uses += wanted.size();
      stored.heat.used(LayerId(l), used);
      stored.heat.age(10);
      while (!wanted.empty()) {
        const ExpertLease lease = pool->acquire(LayerId(l), wanted, stored.heat);
        stored.expect_bytes(lease, l);
        rest.clear();
        std::ranges::set_difference(wanted, lease.here, std::back_inserter(rest));
        wanted.swap(rest);
      }
      const ExpertId next(static_cast<int32_t>(random() % kExperts));
      pool->expect(LayerId((l + 1) % kLayers), {&next, 1}, stored.heat);
    }
    // What was expected last may still be on its way.
    stored.heat.age(1);
    const ExpertId any(0);
    for (int i = 0; i < 50; ++i) pool->acquire(LayerId(0), {&any, 1}, stored.heat);
    const PoolCounters c = pool->counters();
    EXPECT_EQ(c.uses, uses + 50);
    EXPECT_GT(c.misses, 0U);
    if (budget == bytes_of_all()) {
      EXPECT_LE(c.misses + c.look_ahead, 3U * kExperts);
    }
    EXPECT_EQ(c.io_bytes, c.bytes);
    EXPECT_EQ(c.under_way, 0U);
  }
}

TEST_P(Pool, PreloadsTheHottestThatNobodyElseHas) {
  Stored stored;
  stored.heat.used(LayerId(1), std::vector<int32_t>{3, 3, 3, 4, 4, 5});
  const auto pool = stored.pool(130'000, GetParam());
  pool->preload(stored.heat, [](ExpertPlace p) { return p == ExpertPlace{1, 3}; }, {});
  const PoolCounters before = pool->counters();
  EXPECT_GE(before.preloaded, 3U);
  EXPECT_EQ(before.bytes, before.io_bytes);
  const std::vector<ExpertId> hot = {ExpertId(4), ExpertId(5)};
  stored.expect_bytes(pool->acquire(LayerId(1), hot, stored.heat), 1);
  EXPECT_EQ(pool->counters().misses, 0U);
  const ExpertId other(3);
  stored.expect_bytes(pool->acquire(LayerId(1), {&other, 1}, stored.heat), 1);
  EXPECT_EQ(pool->counters().misses, 1U);
  // Moved to another tier: read again when it is wanted here again.
  pool->forget({1, 3});
  pool->acquire(LayerId(1), {&other, 1}, stored.heat);
  EXPECT_EQ(pool->counters().misses, 2U);
}

// A lease that lives keeps its experts, whatever else is wanted.
TEST_P(Pool, WhatIsInUseStays) {
  Stored stored;
  const auto pool = stored.pool(80'000, GetParam());
  const ExpertId first(0);
  const ExpertLease held = pool->acquire(LayerId(1), {&first, 1}, stored.heat);
  const std::byte* const at = held.parts.row(0)[0];
  for (int e = 1; e < kExperts; ++e) {
    const ExpertId id(e);
    stored.heat.used(LayerId(1), std::vector<int32_t>{e});
    pool->acquire(LayerId(1), {&id, 1}, stored.heat);
  }
  for (Bytes i = 0; i < kLarge.part[0]; ++i) ASSERT_EQ(at[i], byte_of(1, 0, 0, i));
}

TEST_P(Pool, AFailedReadIsAnErrorAndTheNextMayGoWell) {
  Stored stored;
  const auto pool = stored.pool(80'000, GetParam());
  const ExpertId last(kExperts - 1);
  const auto bytes = std::filesystem::file_size(stored.path());
  std::filesystem::resize_file(stored.path(), bytes - 10);
  try {
    pool->acquire(LayerId(2), {&last, 1}, stored.heat);
    ADD_FAILURE() << "read what is not there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_NE(e.message().find("experts"), std::string::npos) << e.message();
  }
  const ExpertId first(0);
  stored.expect_bytes(pool->acquire(LayerId(2), {&first, 1}, stored.heat), 2);
  EXPECT_THROW(pool->acquire(LayerId(2), {&last, 1}, stored.heat), Error);
}

TEST_P(Pool, WhatNobodyAskedForMayFail) {
  Stored stored;
  const auto pool = stored.pool(80'000, GetParam());
  std::filesystem::resize_file(stored.path(), std::filesystem::file_size(stored.path()) - 10);
  const ExpertId last(kExperts - 1);
  for (int round = 0; round < 4; ++round) {
    for (int e = 0; e + 1 < kExperts; ++e) {
      const ExpertId wanted(e);
      pool->expect(LayerId(2), {&last, 1}, stored.heat);
      stored.expect_bytes(pool->acquire(LayerId(2), {&wanted, 1}, stored.heat), 2);
    }
  }
  EXPECT_THROW(pool->acquire(LayerId(2), {&last, 1}, stored.heat), Error);
}

TEST(RamPool, TooLittleIsRefusedWithWhatWouldDo) {
  const auto devices = device::make_devices("host", {});
  Plan plan;
  try {
    RamPool pool({{.shape = kSmall}, {.shape = kLarge}}, kExperts, 10'000, *devices.front(), plan);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(e.message().find("KiB"), std::string::npos) << e.message();
  }
}

TEST(RamPool, SlotsAreSharedOutBySize) {
  const std::vector<Bytes> blobs = {100, 300, 100, 0};
  const auto total = [](const std::vector<SlotClass>& classes) {
    Bytes sum = 0;
    for (const SlotClass& c : classes) sum += c.bytes * static_cast<Bytes>(c.n);
    return sum;
  };
  EXPECT_TRUE(share_out(blobs, 8, 299).empty());
  for (const Bytes budget : {300U, 500U, 1000U, 2345U, 3999U}) {
    const std::vector<SlotClass> classes = share_out(blobs, 8, budget);
    ASSERT_FALSE(classes.empty()) << budget;
    EXPECT_LE(total(classes), budget);
    EXPECT_GT(total(classes) + 300, budget);
  }
  EXPECT_EQ(total(share_out(blobs, 8, 100'000)), 8U * 500);
}

INSTANTIATE_TEST_SUITE_P(Ways, Pool,
                         ::testing::Values(io::DirectReader::Way::kUring,
                                           io::DirectReader::Way::kThreads),
                         [](const auto& instance) {
                           return instance.param == io::DirectReader::Way::kUring ? "uring"
                                                                                  : "threads";
                         });

}  // namespace
}  // namespace strata::memory

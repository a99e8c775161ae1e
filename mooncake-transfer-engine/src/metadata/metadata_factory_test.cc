#include "mooncake-transfer-engine/src/metadata/metadata_factory.h"

#include <gtest/gtest.h>

#include <string>

namespace mooncake::transfer {
namespace {

Result<std::unique_ptr<Metadata>> Make(const std::string& connection) {
  static Reactor reactor;
  return MakeMetadata({.connection = connection, .local_server_name = "n"}, reactor, Rng(1));
}

TEST(MetadataFactory, MakesWhatTheConnectionNames) {
  for (const char* good : {"P2PHANDSHAKE", "http://127.0.0.1:8080/metadata",
                           "https://meta.example/metadata", "HTTP://[::1]:8080/metadata"}) {
    const auto made = Make(good);
    EXPECT_TRUE(made.has_value()) << made.error().message;
  }
}

TEST(MetadataFactory, SaysWhatIsNotBuilt) {
  for (const char* later : {"etcd://10.0.0.1:2379", "etcd://a:1,b:2", "redis://10.0.0.1",
                            "10.0.0.1:2379", "etcd.example:2379"}) {
    const auto made = Make(later);
    ASSERT_FALSE(made.has_value()) << later;
    EXPECT_EQ(made.error().code, ErrorCode::kNotSupported) << later;
    EXPECT_NE(made.error().message.find(later), std::string::npos) << made.error().message;
  }
}

TEST(MetadataFactory, QuotesWhatItDoesNotKnow) {
  for (const char* bad : {"", "ftp://a", "p2p handshake", "http://", "http://a:99999/metadata"}) {
    const auto made = Make(bad);
    ASSERT_FALSE(made.has_value()) << bad;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument) << bad;
    EXPECT_NE(made.error().message.find(bad), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace mooncake::transfer

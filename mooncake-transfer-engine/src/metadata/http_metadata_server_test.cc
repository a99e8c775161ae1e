#include "mooncake-transfer-engine/src/metadata/http_metadata_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "mooncake-common/src/net/http/client.h"
#include "mooncake-common/src/test_support/wait_until.h"

namespace mooncake::transfer {
namespace {

using ::testing::HasSubstr;

class HttpMetadataServerTest : public testing::Test {
 protected:
  void SetUp() override {
    metadata_.Attach(http_);
    ASSERT_TRUE(http_.Start());
    base_ = "http://127.0.0.1:" + std::to_string(http_.port());
  }

  // "200 text", or the error.
  std::string Ask(const std::string& method, const std::string& key, const std::string& body = "") {
    return AskUrl(method, WithQueryParameter(base_ + "/metadata", "key", key), body);
  }

  std::string AskUrl(const std::string& method, const std::string& url,
                     const std::string& body = "") {
    const auto response = client_.Send(
        {.method = method, .url = url, .content_type = "application/json", .body = body});
    if (!response) {
      return response.error().ToString();
    }
    // A type stands only on a hit.
    EXPECT_EQ(response->content_type.has_value(),
              method == "GET" && response->status == 200 && !url.contains("/health"));
    return std::to_string(response->status) + " " + response->body;
  }

  HttpMetadataServer metadata_{{.max_keys = 4, .max_bytes = 200}};
  HttpServer http_{{.host = "127.0.0.1"}};
  HttpClient client_{{.total_timeout = kHangLimit, .connect_timeout = kHangLimit}};
  std::string base_;
};

TEST_F(HttpMetadataServerTest, KeepsReplacesAndDeletesAValue) {
  EXPECT_EQ(Ask("GET", "mooncake/ram/a"), "404 metadata not found");
  EXPECT_EQ(Ask("PUT", "mooncake/ram/a", "{\"x\":1}"), "200 metadata updated");
  EXPECT_EQ(Ask("GET", "mooncake/ram/a"), "200 {\"x\":1}");
  EXPECT_EQ(Ask("PUT", "mooncake/ram/a", "{\"x\":2}"), "200 metadata updated");
  EXPECT_EQ(Ask("GET", "mooncake/ram/a"), "200 {\"x\":2}");
  EXPECT_EQ(Ask("DELETE", "mooncake/ram/a"), "200 metadata deleted");
  EXPECT_EQ(Ask("DELETE", "mooncake/ram/a"), "404 metadata not found");
}

TEST_F(HttpMetadataServerTest, LetsAnRpcMetaKeyBelongToOneEngine) {
  const std::string key = "mooncake/rpc_meta/127.0.0.1:12345";
  EXPECT_EQ(Ask("PUT", key, "{1}"), "200 metadata updated");
  EXPECT_EQ(Ask("PUT", key, "{1}"), "200 metadata unchanged");
  EXPECT_EQ(Ask("PUT", key, "{2}"), "400 Duplicate rpc_meta key not allowed");
  EXPECT_EQ(Ask("GET", key), "200 {1}");
  EXPECT_EQ(Ask("DELETE", key), "200 metadata deleted");
  EXPECT_EQ(Ask("PUT", key, "{2}"), "200 metadata updated");
}

TEST_F(HttpMetadataServerTest, RefusesAMissingOrBlankKeyAndTrimsNone) {
  for (const std::string method : {"GET", "PUT", "DELETE"}) {
    EXPECT_EQ(AskUrl(method, base_ + "/metadata"), "400 Missing key parameter");
    EXPECT_EQ(AskUrl(method, base_ + "/metadata?key="), "400 Missing key parameter");
    EXPECT_EQ(AskUrl(method, base_ + "/metadata?other=a"), "400 Missing key parameter");
    EXPECT_EQ(Ask(method, " "), "400 Missing key parameter");
  }
  EXPECT_EQ(Ask("PUT", " a ", "1"), "200 metadata updated");
  EXPECT_EQ(Ask("GET", "a"), "404 metadata not found");
  EXPECT_EQ(Ask("GET", " a "), "200 1");
}

TEST_F(HttpMetadataServerTest, KnowsNoOtherMethodAndAnswersHealth) {
  EXPECT_EQ(Ask("POST", "a", "1"), "404 ");
  EXPECT_EQ(Ask("PATCH", "a", "1"), "404 ");
  EXPECT_EQ(AskUrl("GET", base_ + "/health"), "200 OK");
  EXPECT_EQ(AskUrl("GET", base_ + "/nosuch").substr(0, 3), "404");
}

TEST_F(HttpMetadataServerTest, KeepsAnyBytesApart) {
  const std::string odd("a/b?c&d=e%20+\0\xff", 15);
  EXPECT_EQ(Ask("PUT", odd, std::string("\0\r\n", 3)), "200 metadata updated");
  EXPECT_EQ(Ask("GET", odd), std::string("200 \0\r\n", 7));
  EXPECT_EQ(metadata_.Find(odd), std::string("\0\r\n", 3));
}

TEST_F(HttpMetadataServerTest, SaysThatItIsFullAndTakesMoreAfterADelete) {
  for (const std::string key : {"1", "2", "3", "4"}) {
    EXPECT_EQ(Ask("PUT", key, "v"), "200 metadata updated");
  }
  EXPECT_THAT(Ask("PUT", "5", "v"), HasSubstr("507 metadata server is full: 4 keys of at most 4"));
  EXPECT_EQ(Ask("PUT", "4", "w"), "200 metadata updated");
  EXPECT_TRUE(metadata_.Erase("1"));
  EXPECT_FALSE(metadata_.Erase("1"));
  EXPECT_EQ(Ask("PUT", "5", "v"), "200 metadata updated");
  EXPECT_THAT(Ask("PUT", "5", std::string(200, 'x')), HasSubstr("507 "));
  EXPECT_EQ(Ask("GET", "5"), "200 v");
  for (int i = 0; i < 10; ++i) {  // What is replaced is not counted twice.
    EXPECT_EQ(Ask("PUT", "5", std::string(150, 'x')), "200 metadata updated");
  }
  EXPECT_EQ(metadata_.key_count(), 4);
}

TEST_F(HttpMetadataServerTest, AnswersHeadAsGetWithoutTheBody) {
  EXPECT_EQ(Ask("PUT", "a", "value"), "200 metadata updated");
  const auto head = client_.Send({.method = "HEAD", .url = base_ + "/metadata?key=a"});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
}

}  // namespace
}  // namespace mooncake::transfer

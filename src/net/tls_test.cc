#include "net/tls.h"

#include <gtest/gtest.h>

#include "net/tls_impl.h"

namespace dibs::net {
namespace {

TEST(Tls, keeps_who_vouches_for_a_client_certificate) {
  EXPECT_EQ(verdict_on(true, false, X509_V_OK), X509_V_OK);
  EXPECT_EQ(verdict_on(true, true, X509_V_OK), kVerifiedByBoth);
  EXPECT_EQ(verdict_on(false, true, X509_V_ERR_CERT_HAS_EXPIRED), kVerifiedByFrontProxy);
  EXPECT_EQ(verdict_on(false, false, X509_V_ERR_CERT_HAS_EXPIRED), X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(Tls, takes_no_error_of_openssl_for_a_word_that_somebody_vouches) {
  for (const int error : {X509_V_OK, kVerifiedByFrontProxy, kVerifiedByBoth}) {
    EXPECT_EQ(verdict_on(false, false, error), X509_V_ERR_CERT_REJECTED) << error;
  }
}

}  // namespace
}  // namespace dibs::net

package witness

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestSigV4 holds the signer against AWS's published examples: those of the S3
// guide ("Signature Calculations for the Authorization Header: Transferring
// Payload in a Single Chunk") and get-vanilla of the signature test suite. Their
// keys are examples that AWS gives everybody.
func TestSigV4(t *testing.T) {
	s3 := Access{Region: "us-east-1", ID: "AKIA" + "IOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"}
	suite := Access{Region: "us-east-1", ID: "AKID" + "EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+" + "bPxRfiCYEXAMPLEKEY"}
	day := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, method, url, service string
		access                     Access
		at                         time.Time
		payload                    string
		header                     []string
		want                       string
	}{
		{"get object", "GET", "https://examplebucket.s3.amazonaws.com/test.txt", "s3", s3, day, nothing,
			[]string{"Range", "bytes=0-9", "X-Amz-Content-Sha256", nothing}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"put object", "PUT", "https://examplebucket.s3.amazonaws.com/test$file.text", "s3", s3, day, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			[]string{"Date", "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class", "REDUCED_REDUNDANCY", "X-Amz-Content-Sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"get lifecycle", "GET", "https://examplebucket.s3.amazonaws.com/?lifecycle", "s3", s3, day, nothing,
			[]string{"X-Amz-Content-Sha256", nothing}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"list objects", "GET", "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "s3", s3, day, nothing,
			[]string{"X-Amz-Content-Sha256", nothing}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
		{"get-vanilla", "GET", "https://example.amazonaws.com/", "service", suite, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC), nothing,
			nil, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "service", suite, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC), nothing,
			nil, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
	} {
		r, err := http.NewRequest(c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		c.access.sign(r, c.service, c.payload, c.at)
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

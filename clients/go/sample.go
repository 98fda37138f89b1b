package paybell

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SampleKeys gives keys that everybody knows: for tests only. Settings are added as JSON members: `"cipher": "jwe"`.
func SampleKeys(settings ...string) *Keys {
	named, _ := json.Marshal(contract.SampleKeys)
	keys, err := ParseKeys(named, []byte("{"+strings.Join(settings, ",")+"}"))
	if err != nil {
		panic(err)
	}
	return keys
}

// Sample is an IPN as Paybell would POST it, signed and encrypted: for tests of your own callback. The kinds are sale,
// decline, void, preauth, preauth_complete, cancel, refund and settlement; fields replace those of the IPN.
func Sample(kind string, source Source, fields map[string]any) (body []byte, headers http.Header, err error) {
	defer caught(&err)
	keys, sample := source.Current(), contract.Samples[kind]
	known := strings.Join(slices.Sorted(maps.Keys(contract.Samples)), ", ")
	misusedIf(sample.IPN == nil, "wrong_option", "There is no sample "+kind+", but "+known+".")
	ipn, isExtended := maps.Clone(sample.IPN), slices.Contains(keys.agreed.Fields, "extended")
	ipn["id"], ipn["reqId"] = newID(), newID()
	headers = http.Header{}
	if sample.HasOriginal {
		headers.Set("Paybell-Original-Transaction", newID())
	}
	if isExtended {
		maps.Copy(ipn, sample.Extended)
		if sample.HasOriginal {
			ipn["originalId"] = headers.Get("Paybell-Original-Transaction")
		}
	}
	for name, value := range fields {
		_, isThere := ipn[name]
		misusedIf(!isThere, "wrong_option", "A "+kind+" has no field "+name+".")
		ipn[name] = value
	}
	text := keys.agreed.Signing.text(kind == "settlement", ipn, ipn, isExtended)
	ipn["signature"] = hex.EncodeToString(hmacOf(keys.versions["signingKey"][0], text))
	plain, _ := json.Marshal(ipn)
	body, _ = json.Marshal(map[string]string{"data": seal(keys.agreed, keys.versions["encryptionKey"][0], plain)})
	id, timestamp := newID(), strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{"Content-Type": "application/json", "Webhook-Id": id,
		"Webhook-Timestamp": timestamp, "Paybell-Attempt": "1", "Paybell-Command": sample.Command,
		"Webhook-Signature": signatureOf(keys.versions["webhookSecret"][0], id, timestamp, body)} {
		headers.Set(name, value)
	}
	return body, headers, nil
}

// A UUID v4.
func newID() string {
	raw := random(16)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

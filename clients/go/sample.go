package paybell

import (
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
	settles, setting, posted := kind == "settlement", slices.Min(keys.agreed.Fields), maps.Clone(sample.Headers)
	ipn := byTableNames(sample.IPN, tableOf(settles, setting).Fields)
	ipn["id"], ipn["reqId"] = newID(), newID()
	for name, value := range fields {
		_, isThere := ipn[name]
		misusedIf(!isThere, "wrong_option", "A "+kind+" has no field "+name+".")
		ipn[name] = value
	}
	ipn["signature"] = keys.signatures(settles, setting, ipn, ipn)[0]
	plain, _ := json.Marshal(ipn)
	body, _ = json.Marshal(map[string]string{"data": seal(keys.agreed, keys.versions["encryptionKey"][0], plain)})
	id, timestamp := newID(), strconv.FormatInt(time.Now().Unix(), 10)
	posted["webhook-id"], posted["webhook-timestamp"] = id, timestamp
	posted["webhook-signature"] = signatureOf(keys.versions["webhookSecret"][0], id, timestamp, body)
	return body, headerOf(posted), nil
}

// A UUID v4.
func newID() string {
	raw := random(16)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

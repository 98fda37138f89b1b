export {
  type CardSample,
  type Sample,
  type SampleIpn,
  type SettlementSample,
  sampleIpn,
  sampleKeys,
  type Tampering,
} from "./sample.ts";
export {
  type TestDelivery,
  type TestDeliveryOptions,
  type TestIpn,
  testDelivery,
  testEnvelope,
} from "./sample-delivery.ts";

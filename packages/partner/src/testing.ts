export {
  type CardSample,
  type Sample,
  type SampleIpn,
  type SettlementSample,
  sampleIpn,
  sampleKeys,
  type Tampering,
  type TestDelivery,
  type TestDeliveryOptions,
  type TestIpn,
  testDelivery,
  testEnvelope,
} from "./sample.ts";

export { type Sample, type SampleIpn, type Spoilt, sampleIpn, sampleKeys } from "./sample.ts";
export {
  type TestDelivery,
  type TestDeliveryOptions,
  type TestIpn,
  testDelivery,
  testEnvelope,
} from "./sample-delivery.ts";

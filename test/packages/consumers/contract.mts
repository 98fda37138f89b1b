import { randomBytes } from "node:crypto";
import {
  defaultSealing,
  defaultSigning,
  hmacKey,
  open,
  seal,
  sealingKey,
  sign,
  signatureMatches,
  signedString,
} from "@paybell/contract";

const key = sealingKey("key-1", randomBytes(32));
const signingKey = hmacKey(randomBytes(32));
const text: string = signedString("card", { tid: "", mid: "000000000000001", amount: "150000" }, defaultSigning);
const signature: string = sign(text, signingKey);
const opened = open(seal(JSON.stringify({ signature }), defaultSealing, key), defaultSealing, [key]);

process.stdout.write(
  JSON.stringify({
    text,
    verified: signatureMatches(text, JSON.parse(opened.text).signature, signingKey),
    keyId: opened.keyId,
  }),
);

// @ts-expect-error: the kind of an IPN is a closed list, and the shipped types say so.
signedString.bind(undefined, "refund");

import { oneOf, text, url } from "./kind.ts";
import { optional, setting } from "./setting.ts";

const http = url("https:", "http:");

/** The key service that keeps the master key wrapped. */
export const kmsSettings = {
  kms: optional({
    name: "PAYBELL_KMS",
    kind: oneOf(["vault", "aws"]),
    meaning:
      "Key service that unwraps the master key at each start: `vault` is the transit engine of Vault or OpenBao, " +
      "`aws` the AWS Key Management Service. The master key is then the output of `paybell master-key new`, and " +
      "useless without the service.",
  }),
  kmsUrl: optional({
    name: "PAYBELL_KMS_URL",
    kind: http,
    meaning:
      "URL of the key service, such as https://vault.internal:8200. With `aws`, not set: that of the region " +
      "(https://kms.<region>.amazonaws.com).",
  }),
  kmsMount: setting({
    name: "PAYBELL_KMS_MOUNT",
    kind: text,
    default: "transit",
    meaning: "Path at which the transit engine of the key service is mounted.",
  }),
  kmsKey: optional({
    name: "PAYBELL_KMS_KEY",
    kind: text,
    meaning:
      "The key: its name in the transit engine, `paybell` if not set; with `aws` the id, the ARN or alias/… of a " +
      "symmetric key.",
  }),
  kmsTokenFile: optional({
    name: "PAYBELL_KMS_TOKEN_FILE",
    kind: text,
    meaning:
      "File with the token for Vault. The token's policy needs `update` on `decrypt`, and on `encrypt` to make a key.",
  }),
  awsRegion: optional({
    name: "AWS_REGION",
    kind: text,
    meaning: "Region of the key, such as eu-west-1. Required with PAYBELL_KMS=aws.",
  }),
  awsAccessKeyId: optional({
    name: "AWS_ACCESS_KEY_ID",
    kind: text,
    meaning:
      "Access key for AWS. Not set: the credentials of the container's agent (EKS, ECS), or of the EC2 instance's " +
      "role. They need kms:Decrypt on the key, and kms:Encrypt to make a master key.",
  }),
  awsSecretAccessKey: optional({
    name: "AWS_SECRET_ACCESS_KEY",
    kind: text,
    meaning: "Secret of AWS_ACCESS_KEY_ID.",
    secret: true,
  }),
  awsSessionToken: optional({
    name: "AWS_SESSION_TOKEN",
    kind: text,
    meaning: "Session token of AWS_ACCESS_KEY_ID, if that is temporary.",
    secret: true,
  }),
  awsContainerUrl: optional({
    name: "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    kind: http,
    meaning: "URL of the agent that has the pod's credentials. EKS sets it.",
  }),
  awsContainerPath: optional({
    name: "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    kind: text,
    meaning: "Path of the task's credentials at the agent, http://169.254.170.2. ECS sets it.",
  }),
  awsContainerTokenFile: optional({
    name: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    kind: text,
    meaning: "File with the token for that agent. EKS sets it.",
  }),
};

-- Of a token that a sign-in by OpenID made, who the provider says it is: issuer and sub. It ends with its session.
ALTER TABLE operators ADD COLUMN subject text;

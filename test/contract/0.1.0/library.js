import { Buffer, isUtf8 } from "node:buffer";
import { createDecipheriv, createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
// packages/partner/src/paybell-error.ts
/**
* The base class of every error of this library. Branch on `code`; a code is never renamed. Errors of your own function
* are passed on unchanged.
*/
var PaybellError = class extends Error {};
// packages/partner/src/misused.ts
const environment = "Is the environment variable set in this process?";
const asShown = "Give it exactly as registration showed it.";
/** Every mistake in your code or configuration that can be reported: what is wrong, and what to do about it. */
const misuses = {
	missing_key: ["is missing", environment],
	empty_key: ["is empty", environment],
	key_not_text: ["is neither a string nor a list of versions", "Give a base64 string or [{ id, key }], both strings."],
	no_key_version: ["is an empty list", "Give at least one version."],
	hexadecimal_key: ["is hexadecimal", "Convert it: Buffer.from(hex, \"hex\").toString(\"base64\")."],
	key_encoded_twice: ["is base64-encoded twice", "Decode it once."],
	base64url_key: ["is base64url or lacks its padding", "Convert it: Buffer.from(text, \"base64\").toString(\"base64\")."],
	white_space_in_key: ["has white space around it", "trim() it: it includes a line end."],
	key_not_base64: ["is not base64", asShown],
	key_length: ["does not have 32 bytes", asShown],
	webhook_secret_as_key: ["is a webhook secret", "Set it as webhookSecret."],
	api_key_as_key: ["is an API key", "Registration showed this key under its own name."],
	no_whsec_prefix: ["does not begin with whsec_", "Give webhookSecret with its prefix; if this is encryptionKey or signingKey, the options are swapped."],
	two_whsec_prefixes: ["begins with whsec_ twice", asShown],
	shared_key: ["is the same key as another", "Each key has its own value: one variable was pasted twice."],
	missing_await: ["is a Promise", "await it first."],
	unknown_option: ["is not an option", "See ReceiverOptions."],
	wrong_option: ["cannot be used this way", "See ReceiverOptions."],
	headers_given_up: ["allowMissingHeaders cannot be used with aes-256-cbc unless signing is { mode: \"whole\" }", "Use aes-256-gcm or jwe, or sign the whole IPN: nothing would protect the fields that are not signed."],
	no_options: ["has no options", "Give an object: { … }."],
	no_address: ["is not an IP address or CIDR block", "Write it as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32."],
	not_raw: ["open() needs the raw body as received (bytes or a string), not the result of a JSON parser", "Read the request before the parser does."],
	no_headers: ["open() needs the request's headers", "Pass them as its second argument."],
	no_receiver: ["The handler's first argument is not a receiver", "Make one: receiver({ encryptionKey, … })."],
	no_function: ["was given no function", "Pass the function that processes an IPN."],
	no_store: ["was given no store", "Make one: memoryStore()."],
	no_id: ["is empty: it identifies nothing", "Check where the value comes from."],
	no_amount: ["is not a decimal number", "Pass it as in its IPN: 12.50."],
	body_already_read: ["Something read the body before the handler did", "Let the handler read it."]
};
/** A mistake in your code or configuration, reported where it was made. It never contains the value of a key. */
var Misused = class extends PaybellError {
	code = "misused";
	reason;
	remedy;
	/** @internal `where`: the argument or option. `meaning`, `remedy`: more exact ones, if known. */
	constructor(reason, where = "", { meaning = "", remedy = "" } = {}) {
		const [usualMeaning, usualRemedy] = misuses[reason];
		const what = remedy || usualRemedy;
		super(`${`${where} ${meaning || usualMeaning}`.trim()}. ${what}`);
		this.reason = reason;
		this.remedy = what;
	}
	get name() {
		return "Misused";
	}
};
/** @throws Misused naming the unknown option, and the known ones */
function checkNames(where, given, known) {
	const unknown = Object.keys(given).find((name) => !known.includes(name));
	if (unknown === void 0) return;
	throw new Misused("unknown_option", where + unknown, { remedy: `There are ${known.join(", ")}.` });
}
// packages/partner/src/order.ts
/**
* Returns the key that the IPNs of one chain share. The Void and the Complete have the invoiceNo of their original;
* unlike paybell-original-transaction it is in the sealed body. A settlement, and an IPN without invoiceNo, has a chain
* of its own.
*/
function chainOf({ kind, ipn }) {
	return JSON.stringify(kind === "card" && ipn.invoiceNo !== "" ? [
		ipn.mid,
		ipn.tid,
		ipn.invoiceNo
	] : [ipn.id]);
}
function knownFrom({ kind, ipn, command }) {
	const of = kind === "card" ? ipn : {
		isoResponseCode: "",
		amount: ipn.totalAmount,
		currency: "",
		refId: ""
	};
	return {
		id: ipn.id,
		command: command ?? "",
		transactionType: ipn.transaction_type,
		status: ipn.status,
		isoResponseCode: of.isoResponseCode,
		amount: of.amount,
		currency: of.currency,
		reqId: ipn.reqId,
		refId: of.refId,
		merchantTransId: ipn.merchantTransId
	};
}
/** @param seen the other IPNs that a store has under the same chain */
function orderOf(ipn, seen) {
	const known = sameInvoice(ipn, seen).filter((other) => other !== ipn && step(other) + step(ipn) > 0);
	const stale = known.some((other) => succeeded(other) && (step(other) > step(ipn) || step(other) === step(ipn) && !succeeded(ipn)));
	const says = (one) => (succeeded(one) ? 10 : 0) + step(one);
	return {
		stale,
		latest: known.reduce((now, next) => says(next) > says(now) ? next : now, ipn),
		known: known.sort((one, other) => step(one) - step(other))
	};
}
function succeeded({ status }) {
	return status === "SUCCESS";
}
/** 0 begins a chain, 1 completes a PreAuth, 2 ends it. */
function step({ transactionType, command }) {
	if (transactionType === "VOID" || transactionType === "CANCEL") return 2;
	return command === "PREAUTH_COMPLETE" ? 1 : 0;
}
const clocksApartMs = 36e5;
/**
* A terminal's invoice numbers restart after 999,999. An IPN that begins a chain, and is later than all others by more
* than the clocks can differ, therefore belongs to another invoice with the same number.
*/
function sameInvoice(ipn, seen) {
	const byTime = [ipn, ...seen].sort((one, other) => startedMs(one.id) - startedMs(other.id));
	let invoice = [];
	for (const one of byTime) {
		const before = invoice.at(-1);
		if (before !== void 0 && startedMs(one.id) - startedMs(before.id) > clocksApartMs && step(one) === 0) {
			if (invoice.includes(ipn)) break;
			invoice = [];
		}
		invoice.push(one);
	}
	return invoice;
}
/** Ids of the service are UUIDv7, which begin with the time. Other ids have none: then the number decides. */
function startedMs(id) {
	return /^[0-9a-f]{8}-[0-9a-f]{4}-7/i.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : NaN;
}
// packages/partner/src/deduplicate.ts
/**
* Runs a function once for each IPN, however often it arrives: retries, redeliveries, concurrent duplicates, crashes.
* An IPN is identified by its `id`, which every redelivery and the pull API repeat. If the function throws, nothing is
* recorded, and the next delivery runs it again.
*
* @returns a function that takes yours. Its result is for a handler, or for the items that `catchUp` yields
* @throws Misused (also from the returned function) if the argument is not a store, or not a function
*/
function deduplicate(store) {
	if (store instanceof Promise) throw new Misused("missing_await", "deduplicate()'s store");
	if (typeof store?.once !== "function") throw new Misused("no_store", "deduplicate()");
	return (onIpn) => {
		if (typeof onIpn !== "function") throw new Misused("no_function", "deduplicate(store)(…)");
		return async (received) => {
			const { id } = received.ipn;
			if (id === "") throw new Misused("no_id", "The IPN", { meaning: "has no id: nothing tells whether it was processed before" });
			const facts = knownFrom(received);
			return await store.once({
				id,
				chain: chainOf(received),
				facts
			}, (tx, known) => onIpn(received, tx, orderOf(facts, known)));
		};
	};
}
/** Commands whose completion is notified: section 1, rule 1. A REFUND is notified if its partner agreed to it. */
const notifiedCommands = [...[
	"SALE",
	"VOID",
	"PREAUTH",
	"PREAUTH_COMPLETE",
	"REFUND"
], "SETTLEMENT"];
/** Commands that are never notified: section 1, rule 2. */
const systemCommands = [
	"LOGON",
	"REVERSAL",
	"BATCH_UPLOAD"
];
[...notifiedCommands, ...systemCommands];
// packages/contract/src/encoding.ts
const encodings = [
	"base64",
	"base64url",
	"hex"
];
/**
* Decodes a text that is exactly what an encoder writes: no white space, no other alphabet, canonical padding (none for
* base64url), no unused bits. Hexadecimal may be in either case. Returns undefined for any other text.
*
* Buffer.from skips characters that it does not know, so many texts would decode to the same bytes.
*/
function decodeStrictly(text, encoding) {
	if (Buffer.byteLength(text, "utf8") !== text.length) return void 0;
	const bytes = Buffer.from(text, encoding);
	if (encoding === "hex") return bytes.length * 2 === text.length ? bytes : void 0;
	return isWrittenBase64(text, bytes, encoding) ? bytes : void 0;
}
/**
* Whether the text is the canonical base64 of the bytes read from it. A skipped character makes fewer bytes of the same
* length of text; the alphabets differ in two characters; only the last group can have unused bits. Measured: encoding
* and comparing the whole text takes a twentieth of the time of opening an IPN.
*/
function isWrittenBase64(text, bytes, encoding) {
	const isUrl = encoding === "base64url";
	const lengthWritten = isUrl ? Math.ceil(bytes.length * 4 / 3) : Math.ceil(bytes.length / 3) * 4;
	if (text.length !== lengthWritten) return false;
	if (isUrl ? text.includes("+") || text.includes("/") : text.includes("-") || text.includes("_")) return false;
	const groups = Math.max(0, Math.ceil(bytes.length / 3) - 1);
	return bytes.toString(encoding, groups * 3) === text.slice(groups * 4);
}
// packages/contract/src/errors.ts
/**
* The message was not sealed and signed with our keys, or not as agreed.
*
* Every cause has the same name, message, code and stack: a sender of forged messages must not learn how far one got
* (an answer that distinguishes bad padding from a bad signature decrypts AES-CBC for the attacker). `reason` is a
* getter on the prototype, so that loggers, JSON and structuredClone do not copy it.
*/
var NotAuthentic = class extends Error {
	code = "not_authentic";
	#reason;
	constructor(reason) {
		super("The message is not authentic.");
		this.#reason = reason;
		Object.defineProperty(this, "stack", {
			value: `NotAuthentic: ${this.message}`,
			enumerable: false,
			writable: true,
			configurable: true
		});
	}
	get name() {
		return "NotAuthentic";
	}
	/** For the log of the keys' owner. Never send it to the sender. */
	get reason() {
		return this.#reason;
	}
};
/** @throws TypeError naming the expected length, never the value. */
function secretKey(what, raw) {
	if (!(raw instanceof Uint8Array)) throw new TypeError(`${what} must be a Buffer of 32 bytes`);
	if (raw.length !== 32) throw new TypeError(`${what} must have 32 bytes, not ${raw.length}`);
	return createSecretKey(raw);
}
// packages/contract/src/headers.ts
/** The headers of a notification beyond those of section 4.1. The first three are Standard Webhooks v1. */
const headerNames = {
	id: "webhook-id",
	timestamp: "webhook-timestamp",
	signature: "webhook-signature",
	attempt: "paybell-attempt",
	contract: "paybell-contract",
	key: "paybell-key",
	command: "paybell-command",
	originalTransaction: "paybell-original-transaction",
	outOfOrder: "paybell-out-of-order"
};
const secretPrefix = "whsec_";
/**
* Returns the key for the headers' signature. `secret` is `whsec_` and the base64 of 32 bytes.
*
* @throws TypeError naming the expected shape, never the value.
*/
function webhookKey(secret) {
	const raw = typeof secret === "string" && secret.startsWith(secretPrefix) ? decodeStrictly(secret.slice(6), "base64") : void 0;
	if (raw === void 0) throw new TypeError(`a webhook secret must be ${secretPrefix} and base64 of 32 bytes`);
	return secretKey("a webhook secret", raw);
}
/** `id.timestamp.body` is unambiguous only if neither of the first two can contain a dot. */
const idShape = /^[^.\s]{1,256}$/;
const timestampShape = /^[0-9]{1,12}$/;
function mac(id, timestamp, body, key) {
	return createHmac("sha256", key).update(`${id}.${timestamp}.`, "utf8").update(body).digest();
}
/**
* Whether one entry of the header is a valid signature under one of the keys, in constant time. Entries of other
* versions are ignored. The caller checks the age of the timestamp.
*/
function webhookSignatureMatches(header, id, timestamp, body, keys) {
	if (typeof header !== "string" || !idShape.test(id) || !timestampShape.test(timestamp)) return false;
	const offered = [];
	for (const entry of header.split(" ")) {
		const bytes = entry.startsWith("v1,") ? decodeStrictly(entry.slice(3), "base64") : void 0;
		if (bytes?.length === 32) offered.push(bytes);
	}
	if (offered.length === 0) return false;
	for (const key of keys) {
		const expected = mac(id, timestamp, body, key);
		for (const bytes of offered) if (timingSafeEqual(bytes, expected)) return true;
	}
	return false;
}
// packages/contract/src/parse-json.ts
const space$1 = 32;
const backslash = 92;
const colon$1 = 58;
const literal = /-?[0-9][0-9.eE+-]*|true|false|null/y;
/**
* As JSON.parse, but correct for every text. Node 26 confuses keys that are written with escapes: after `{"\\":2}` it
* reads `{"\u0062":2}` as the earlier key (nodejs/node#63785), so that one caller's text changes the meaning of
* another's. A text with such a key is parsed here; JSON.parse reads every other one.
*
* @throws SyntaxError
*/
function parseJson(text) {
	return hasEscapedKey(text) ? new Reader(text).read() : JSON.parse(text);
}
/** Counts the keys of all objects in a JSON value. The caller bounds the nesting. */
function countKeys(value) {
	if (typeof value !== "object" || value === null) return 0;
	let keys = 0;
	if (Array.isArray(value)) {
		for (const item of value) if (typeof item === "object") keys += countKeys(item);
		return keys;
	}
	for (const key in value) {
		const item = value[key];
		keys += typeof item === "object" ? countKeys(item) + 1 : 1;
	}
	return keys;
}
/** The place after the closing quote of the string that begins at `start`; 0 when it has none. */
function endOfString(text, start) {
	let end = text.indexOf("\"", start + 1);
	while (isEscaped(text, end)) end = text.indexOf("\"", end + 1);
	return end + 1;
}
/** Whether an odd number of backslashes precedes an index. */
function isEscaped(text, place) {
	let before = place - 1;
	while (text.charCodeAt(before) === backslash) before -= 1;
	return (place - before) % 2 === 0;
}
function hasEscapedKey(text) {
	if (!text.includes("\\")) return false;
	let start = text.indexOf("\"");
	while (start !== -1) {
		const end = endOfString(text, start);
		if (end === 0) return false;
		if (text.charCodeAt(afterSpace$1(text, end)) === colon$1 && text.slice(start, end).includes("\\")) return true;
		start = text.indexOf("\"", end);
	}
	return false;
}
function afterSpace$1(text, from) {
	let at = from;
	while (text.charCodeAt(at) <= space$1) at += 1;
	return at;
}
/** Parses without recursion, because the writer decides how deep a text is nested. */
var Reader = class {
	#text;
	#holders = [];
	#at = 0;
	repeatedKey;
	constructor(text) {
		this.#text = text;
	}
	read() {
		for (;;) {
			if (this.#opens()) continue;
			let value = this.#scalarOrEmpty();
			while (!this.#expectsNext(value)) {
				const closed = this.#holders.pop();
				if (closed === void 0) return value;
				value = closed.value;
			}
		}
	}
	/** Whether a non-empty object or array begins here. */
	#opens() {
		const bracket = this.#peek();
		if (bracket !== "{" && bracket !== "[") return false;
		const holder = bracket === "{" ? {
			close: "}",
			value: {},
			key: ""
		} : {
			close: "]",
			value: []
		};
		const start = this.#at;
		this.#at += 1;
		if (this.#peek() === holder.close) {
			this.#at = start;
			return false;
		}
		this.#holders.push(holder);
		if (holder.close === "}") holder.key = this.#key();
		return true;
	}
	#scalarOrEmpty() {
		const first = this.#peek();
		if (first === "\"") return this.#string();
		if (first === "{" || first === "[") {
			this.#at += 1;
			this.#peek();
			this.#at += 1;
			return first === "{" ? {} : [];
		}
		literal.lastIndex = this.#at;
		const [written] = literal.exec(this.#text) ?? this.#fail();
		this.#at += written.length;
		return JSON.parse(written);
	}
	/** Adds the value to its container. False at the end of the container, or of the text. */
	#expectsNext(value) {
		const holder = this.#holders.at(-1);
		const next = this.#peek();
		if (holder === void 0) return next === void 0 ? false : this.#fail();
		if (holder.close === "]") holder.value.push(value);
		else this.#set(holder.value, holder.key, value);
		this.#at += 1;
		if (next === holder.close) return false;
		if (next !== ",") this.#fail();
		if (holder.close === "}") holder.key = this.#key();
		return true;
	}
	#key() {
		if (this.#peek() !== "\"") this.#fail();
		const key = this.#string();
		if (this.#peek() !== ":") this.#fail();
		this.#at += 1;
		return key;
	}
	/** A string outside of an object has no key that could be confused. */
	#string() {
		const end = endOfString(this.#text, this.#at);
		if (end === 0) this.#fail();
		const written = this.#text.slice(this.#at, end);
		this.#at = end;
		return JSON.parse(written);
	}
	/** The next character that is not white space; undefined at the end. */
	#peek() {
		while (" 	\n\r".includes(this.#text[this.#at] ?? "x")) this.#at += 1;
		return this.#text[this.#at];
	}
	#fail() {
		throw new SyntaxError(`This is not JSON, from character ${this.#at} on.`);
	}
	/** As JSON.parse does: a key `__proto__` is a key as any other. */
	#set(object, key, value) {
		if (Object.hasOwn(object, key)) this.repeatedKey ??= key;
		if (key !== "__proto__") object[key] = value;
		else Object.defineProperty(object, key, {
			value,
			enumerable: true,
			configurable: true,
			writable: true
		});
	}
};
// packages/contract/src/columns.ts
/** The names of section 2.2, in its order. settlementList is missing, because only settlement callbacks have it. */
const cardNames = [
	"aid",
	"amount",
	"appName",
	"approveCode",
	"batchNo",
	"billId",
	"cardHolder",
	"cardNumber",
	"cardScheme",
	"currency",
	"deviceId",
	"expDate",
	"extraData",
	"id",
	"invoiceNo",
	"isoResponseCode",
	"merchantAddress",
	"merchantId",
	"merchantName",
	"merchantTransId",
	"mid",
	"paymentType",
	"refId",
	"reqId",
	"status",
	"swipeType",
	"tc",
	"tid",
	"traceNo",
	"transDateTime",
	"transaction_type",
	"signature"
];
/** The names of section 2.3, in its order. */
const settlementNames = [
	"batchNo",
	"callbackUrl",
	"deviceId",
	"extraData",
	"id",
	"merchantTransId",
	"mid",
	"quantity",
	"reqId",
	"saleQuantity",
	"saleTotalAmount",
	"status",
	"tid",
	"totalAmount",
	"transaction_time",
	"transaction_type",
	"voidQuantity",
	"voidTotalAmount",
	"settlementList",
	"signature"
];
/** The names of one row of settlementList: sections 2.2 (rows 32.1 and 32.2) and 2.3 (rows 19.1 and 19.2). */
const entryNames = ["reqId", "refNo"];
/**
* A second name that receivers accept: the one in the specification's sample body, or, for reqId in settlementList, the
* one in its other table.
*/
const aliases = {
	card: {
		approveCode: "approve_code",
		deviceId: "device_id",
		paymentType: "payment_type"
	},
	settlement: { deviceId: "deviceID" },
	entry: { reqId: "reqID" }
};
const cardColumns = columns(cardNames, aliases.card);
const settlementColumns = columns(settlementNames, aliases.settlement);
const settlementListColumns = columns(entryNames, aliases.entry);
function columns(names, others) {
	return names.map((name) => {
		const alias = others[name];
		return {
			name,
			type: name === "settlementList" ? "list" : "string",
			...alias === void 0 ? {} : { alias }
		};
	});
}
function ipnColumns(kind) {
	return kind === "card" ? cardColumns : settlementColumns;
}
// packages/contract/src/strict-json.ts
/** Only such an escape can produce a lone surrogate, because the text itself was decoded from UTF-8. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;
/** Deeper than any IPN. It bounds the recursion. */
const nestingMax$1 = 64;
/**
* Returns the value of a JSON text, or the reason for refusing it. It refuses more than JSON.parse does. A duplicate
* key in an object, however escaped, has one value for a reader that keeps the first and another for a reader that
* keeps the last. A lone surrogate has no UTF-8 form, so two texts would have the same signature.
*/
function parseStrictly(text) {
	if (typeof text !== "string") return { refused: "not_json" };
	let value;
	try {
		value = parseJson(text);
	} catch {
		return { refused: "not_json" };
	}
	const shortest = shortestLength(value, 0);
	if (shortest === void 0) return { refused: "not_json" };
	if (!hasNoRoom(text, shortest) && keysWritten(text) > countKeys(value)) return { refused: "duplicate_key" };
	if (text.includes("\\u") && surrogateEscape.test(text) && !isWellFormedThroughout(value)) return { refused: "not_json" };
	return { value };
}
/** A lower bound of the length of any JSON text of the value; undefined if it is nested too deep. */
function shortestLength(value, depth) {
	if (typeof value === "string") return value.length + 2;
	if (typeof value !== "object" || value === null) return 1;
	if (depth === nestingMax$1) return void 0;
	const isList = Array.isArray(value);
	const keys = Object.keys(value);
	const items = isList ? value : Object.values(value);
	let length = 2 + Math.max(0, items.length - 1);
	for (let at = 0; at < items.length; at += 1) {
		const item = items[at];
		const inner = typeof item === "string" ? item.length + 2 : shortestLength(item, depth + 1);
		if (inner === void 0) return void 0;
		length += isList ? inner : inner + (keys[at] ?? "").length + 3;
	}
	return length;
}
/** The shortest additional pair: `"":1,`. */
const pairLengthMin = 5;
/**
* Whether the text, without its escapes, is too short to contain one key more than its value. Measured: this avoids the
* scan of compact texts in two thirds of the cases.
*/
function hasNoRoom(text, shortest) {
	if (text.length - shortest < pairLengthMin) return true;
	return !text.includes("\\\\") && text.length - shortest - backslashes(text) < pairLengthMin;
}
function backslashes(text) {
	let count = 0;
	for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at + 1)) count += 1;
	return count;
}
const quote = 34;
const colon = 58;
const space = 32;
/** Counts the keys of a valid JSON text. Measured: a regular expression takes three times as long. */
function keysWritten(text) {
	let keys = 0;
	for (let start = text.indexOf("\""); start !== -1;) {
		let at = endOfString(text, start);
		while (text.charCodeAt(at) <= space) at += 1;
		if (text.charCodeAt(at) === colon) keys += 1;
		start = text.charCodeAt(at + 1) === quote ? at + 1 : text.indexOf("\"", at);
	}
	return keys;
}
function isWellFormedThroughout(value) {
	if (typeof value === "string") return value.isWellFormed();
	if (typeof value !== "object" || value === null) return true;
	if (Array.isArray(value)) return value.every(isWellFormedThroughout);
	return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormedThroughout(item));
}
// packages/contract/src/read-wire.ts
/** As fromWire, but returns the reason instead of throwing. */
function readWire(json) {
	const parsed = parseStrictly(json);
	if ("refused" in parsed) return parsed.refused;
	if (!isObject(parsed.value)) return "not_json";
	const wire = parsed.value;
	const kind = kindOf(wire);
	const ipn = byTableNames(wire, ipnColumns(kind));
	if (typeof ipn === "string") return ipn;
	return {
		kind,
		wire,
		ipn: kind === "card" ? withSchemeInCapitals(ipn) : ipn
	};
}
/** A card IPN may have the type SETTLE too (section 6), so the type does not decide. */
function kindOf(wire) {
	return wire["transaction_type"] === "SETTLE" && ("settlementList" in wire || "saleQuantity" in wire) ? "settlement" : "card";
}
function withSchemeInCapitals(ipn) {
	const scheme = ipn["cardScheme"];
	const capitals = scheme.toUpperCase();
	return scheme === capitals ? ipn : {
		...ipn,
		cardScheme: capitals
	};
}
function byTableNames(wire, columns) {
	if (isAsInTable(wire, columns)) return wire;
	if (!everyScalarIsText(wire)) return "wrong_type";
	const ipn = renamed(wire, columns);
	if (typeof ipn === "string") return ipn;
	for (const { name, type } of columns) if (type === "string") {
		if (typeof ipn[name] !== "string") return "wrong_type";
	} else {
		const list = readList(ipn[name]);
		if (typeof list === "string") return list;
		ipn[name] = list;
	}
	return ipn;
}
/** Whether it has the table's names in its order, and string values only. */
function isAsInTable(wire, columns) {
	const keys = Object.keys(wire);
	const values = Object.values(wire);
	return keys.length === columns.length && columns.every(({ name, type }, at) => keys[at] === name && type === "string" && typeof values[at] === "string");
}
function renamed(wire, columns) {
	const ipn = {};
	for (const { name, alias, type } of columns) {
		const second = alias === void 0 ? void 0 : wire[alias];
		const first = wire[name];
		if (first !== void 0 && second !== void 0) return "two_names";
		ipn[name] = first ?? second ?? (type === "list" ? [] : "");
	}
	return ipn;
}
function readList(value) {
	if (!Array.isArray(value)) return "wrong_type";
	const list = [];
	for (const item of value) {
		const entry = isObject(item) ? byTableNames(item, settlementListColumns) : "wrong_type";
		if (typeof entry === "string") return entry;
		list.push(entry);
	}
	return list;
}
function isObject(value) {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
/** Section 2: all scalars are JSON strings. This applies to unknown keys as well. */
function everyScalarIsText(value) {
	if (typeof value === "string") return true;
	if (typeof value !== "object" || value === null) return false;
	return Object.values(value).every(everyScalarIsText);
}
// packages/contract/src/jwe.ts
/**
* Splits a compact JWE as we seal it, or returns the reason for refusing it. Its header selects one of our keys,
* nothing else.
*/
function jweParts(data) {
	const [header = "", encryptedKey, iv64 = "", ciphertext64 = "", tag64 = "", ...rest] = data.split(".", 6);
	const iv = decodeStrictly(iv64, "base64url");
	const ciphertext = decodeStrictly(ciphertext64, "base64url");
	const tag = decodeStrictly(tag64, "base64url");
	if (encryptedKey !== "" || rest.length > 0) return "encoding";
	if (iv?.length !== 12 || tag?.length !== 16 || ciphertext === void 0) return "encoding";
	const keyId = acceptableKeyId(header);
	return keyId === void 0 ? "jwe_header" : {
		header,
		keyId,
		iv,
		ciphertext,
		tag
	};
}
function acceptableKeyId(header64) {
	const bytes = decodeStrictly(header64, "base64url");
	if (bytes === void 0) return void 0;
	const parsed = parseStrictly(bytes.toString("utf8"));
	if ("refused" in parsed || typeof parsed.value !== "object" || parsed.value === null) return void 0;
	const { alg, enc, kid, zip, crit } = parsed.value;
	if (alg !== "dir" || enc !== "A256GCM" || zip !== void 0 || crit !== void 0) return void 0;
	return typeof kid === "string" ? kid : void 0;
}
// packages/contract/src/sealing.ts
const ciphers = [
	"aes-256-gcm",
	"aes-256-cbc",
	"jwe"
];
/** Every way to seal: jwe has its one encoding. */
const sealings = ciphers.flatMap((cipher) => (cipher === "jwe" ? ["base64url"] : encodings).map((encoding) => ({
	cipher,
	encoding
})));
const defaultSealing = {
	cipher: "aes-256-gcm",
	encoding: "base64"
};
/** @throws TypeError naming the expected length, never the value. */
function sealingKey(id, raw) {
	return {
		id,
		key: secretKey("an encryption key", raw)
	};
}
const gcmIvBytes = 12;
const gcmTagBytes = 16;
const cbcIvBytes = 16;
const blockBytes = 16;
const gcm = { authTagLength: gcmTagBytes };
function takeApart(data, sealing) {
	if (typeof data !== "string") return "encoding";
	if (sealing.cipher === "jwe") {
		const parts = jweParts(data);
		return typeof parts === "string" ? parts : {
			mode: "aes-256-gcm",
			...parts
		};
	}
	const bytes = decodeStrictly(data, sealing.encoding);
	if (bytes === void 0) return "encoding";
	if (sealing.cipher === "aes-256-cbc") {
		if (bytes.length < 32 || bytes.length % blockBytes !== 0) return "encoding";
		return {
			mode: "aes-256-cbc",
			iv: bytes.subarray(0, cbcIvBytes),
			ciphertext: bytes.subarray(cbcIvBytes)
		};
	}
	if (bytes.length < 28) return "encoding";
	return {
		mode: "aes-256-gcm",
		iv: bytes.subarray(0, gcmIvBytes),
		ciphertext: bytes.subarray(gcmIvBytes, -16),
		tag: bytes.subarray(-16)
	};
}
function keysFor(sealed, keys) {
	return sealed.keyId === void 0 ? keys : keys.filter((key) => key.id === sealed.keyId);
}
function decrypt(sealed, { key }) {
	let bytes;
	let isPadded = true;
	try {
		if (sealed.mode === "aes-256-cbc") [bytes, isPadded] = decryptCbc(sealed, key);
		else bytes = decryptGcm(sealed, key);
	} catch {
		return { refused: "decryption" };
	}
	if (!isUtf8(bytes)) return { refused: isPadded ? "not_text" : "decryption" };
	const text = bytes.toString("utf8");
	return isPadded ? { text } : {
		refused: "decryption",
		badlyPadded: text
	};
}
function decryptCbc(sealed, key) {
	const decipher = createDecipheriv("aes-256-cbc", key, sealed.iv).setAutoPadding(false);
	const padded = Buffer.concat([decipher.update(sealed.ciphertext), decipher.final()]);
	const padding = paddingLength(padded);
	return [padded.subarray(0, padded.length - padding), padding > 0];
}
/**
* Returns the length of the PKCS#7 padding, 0 if it is invalid. It neither branches on the content nor throws OpenSSL's
* exception, because an attacker could measure that time and decrypt AES-CBC byte by byte.
*/
function paddingLength(padded) {
	const length = padded[padded.length - 1] ?? 0;
	let wrong = Number(length === 0) | Number(length > blockBytes);
	for (let back = 1; back <= blockBytes; back += 1) wrong |= Number(back <= length) & Number(padded[padded.length - back] !== length);
	return length * (1 - wrong);
}
function decryptGcm(sealed, key) {
	const decipher = createDecipheriv("aes-256-gcm", key, sealed.iv, gcm);
	if (sealed.tag === void 0) throw new TypeError("AES-GCM without a tag");
	decipher.setAuthTag(sealed.tag);
	if (sealed.header !== void 0) decipher.setAAD(Buffer.from(sealed.header, "latin1"));
	const plain = decipher.update(sealed.ciphertext);
	decipher.final();
	return plain;
}
// packages/contract/src/canonical.ts
/** Bounds the recursion, so that hostile nesting throws a TypeError instead of exhausting the stack. */
const nestingMax = 500;
/**
* Returns the canonical JSON of a value: RFC 8785 (JSON Canonicalization Scheme). Object keys are in UTF-16 order,
* without whitespace, numbers and strings as ECMAScript writes them. A property whose value is undefined is left out,
* as JSON.stringify does.
*
* @throws TypeError for a value that JSON cannot represent (a lone surrogate, NaN, an infinity, a bigint, a function, a
* symbol, undefined in a list), and for nesting deeper than 500.
*/
function canonicalJson(value) {
	return write(value, 0);
}
function write(value, depth) {
	if (typeof value === "string") return writeString(value);
	if (typeof value === "number") return writeNumber(value);
	if (value === null || typeof value === "boolean") return String(value);
	if (typeof value !== "object") throw new TypeError(`JSON has no ${typeof value}`);
	if (depth === nestingMax) throw new TypeError(`JSON nested deeper than ${nestingMax}`);
	if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(",")}]`;
	return writeObject(value, depth + 1);
}
function writeObject(object, depth) {
	let text = "";
	for (const key of Object.keys(object).sort()) {
		const value = object[key];
		if (value === void 0) continue;
		text += `${text === "" ? "" : ","}${writeString(key)}:${write(value, depth)}`;
	}
	return `{${text}}`;
}
function writeString(text) {
	if (!text.isWellFormed()) throw new TypeError("JSON text with a lone surrogate has no canonical form");
	return JSON.stringify(text);
}
function writeNumber(number) {
	if (!Number.isFinite(number)) throw new TypeError("JSON has no NaN and no infinity");
	return JSON.stringify(number);
}
// packages/contract/src/signing.ts
const defaultSigning = { mode: "fields" };
/** Section 5.1: isoResponseCode is at positions 4 and 6. */
const cardSigningOrder = [
	"aid",
	"amount",
	"approveCode",
	"isoResponseCode",
	"merchantTransId",
	"isoResponseCode",
	"cardScheme",
	"tid",
	"mid",
	"traceNo",
	"batchNo"
];
/** Section 5.1. */
const settlementSigningOrder = [
	"batchNo",
	"quantity",
	"saleQuantity",
	"saleTotalAmount",
	"voidQuantity",
	"voidTotalAmount",
	"totalAmount",
	"tid",
	"mid"
];
const mustSign = {
	card: [
		"id",
		"transaction_type",
		"status",
		"amount"
	],
	settlement: [
		"id",
		"transaction_type",
		"status",
		"totalAmount"
	]
};
/** extraData is free text; settlementList has no key=value form; the signature cannot sign itself. */
const neverSigned = /* @__PURE__ */ new Set([
	"extraData",
	"settlementList",
	"signature"
]);
/** Returns a sentence for each problem of an agreed signing; empty if it is valid. */
function signingProblems(signing) {
	if (signing.mode === "whole") return [];
	if (signing.mode !== "fields") return ["signing.mode must be \"fields\" or \"whole\""];
	return [...listProblems("card", signing.card), ...listProblems("settlement", signing.settlement)];
}
function listProblems(kind, list) {
	if (list === void 0) return [];
	if (!Array.isArray(list)) return [`signing.${kind} must be a list of field names`];
	const known = new Set(ipnColumns(kind).map(({ name }) => name));
	const unusable = list.flatMap((name) => {
		if (neverSigned.has(name)) return [`signing.${kind} must not hold ${name}`];
		if (!known.has(name)) return [`signing.${kind} holds ${JSON.stringify(name)}, which is no field of the ${kind} IPN`];
		return [];
	});
	const missing = mustSign[kind].filter((name) => !list.includes(name));
	return [...unusable, ...missing.map((name) => `signing.${kind} must hold ${name}`)];
}
/** The fields that a signature covers, by the tables' names, in the order of the signed string. */
function signedFields(kind, signing) {
	if (signing.mode === "whole") return ipnColumns(kind).map(({ name }) => name).filter((name) => name !== "signature");
	if (kind === "card") return signing.card ?? cardSigningOrder;
	return signing.settlement ?? settlementSigningOrder;
}
/** Compiled once each, because partners' settings rarely change and are used for every signature. */
const compiled = {
	card: /* @__PURE__ */ new WeakMap(),
	settlement: /* @__PURE__ */ new WeakMap()
};
function compile(kind, signing) {
	const table = new Map(ipnColumns(kind).map((column) => [column.name, column]));
	const list = signedFields(kind, signing).map((name, at) => {
		const field = table.get(name);
		if (field === void 0 || field.type === "list") throw new TypeError(`${name} cannot be signed as key=value`);
		return {
			lead: `${at === 0 ? "" : "&"}${name}=`,
			name,
			alias: field.alias
		};
	});
	compiled[kind].set(signing, list);
	return list;
}
/**
* Returns the text that is signed: section 5.1. Values are used as they are sent. Empty, null and missing values keep
* their key. The IPN may have the tables' names or the sample's; `fields` always signs the tables' names.
*
* @throws TypeError if a signed field is neither a string nor absent.
*/
function signedString(kind, wire, signing) {
	if (signing.mode === "whole") return canonicalJson({
		...wire,
		signature: void 0
	});
	const fields = compiled[kind].get(signing) ?? compile(kind, signing);
	let text = "";
	for (const field of fields) {
		const value = wire[field.name] ?? (field.alias === void 0 ? void 0 : wire[field.alias]) ?? "";
		if (typeof value !== "string") throw new TypeError(`${field.name} must be a string to be signed`);
		text += field.lead + value;
	}
	return text;
}
const macBytes = 32;
/**
* Whether this is the text's signature, in constant time. Hexadecimal may be in either case; any other shape is false.
*/
function signatureMatches(text, signature, key) {
	const offered = typeof signature === "string" ? decodeStrictly(signature, "hex") : void 0;
	if (offered?.length !== macBytes) return false;
	return timingSafeEqual(createHmac("sha256", key).update(text, "utf8").digest(), offered);
}
/**
* Returns the signing key for its 32 bytes. Keep the result: a KeyObject is cheaper than a raw key at every signature.
*
* @throws TypeError naming the expected length, never the value.
*/
function hmacKey(raw) {
	return secretKey("a signing key", raw);
}
// packages/contract/src/opening.ts
/**
* Opens and verifies a POSTed body, `{"data": "…"}`: sections 2.1 and 5.
*
* @throws NotAuthentic for anything that is not sealed and signed as agreed, always in the same way.
*/
function openAndVerify(body, how) {
	const opened = tryToOpen(body, how);
	if (typeof opened === "string") throw new NotAuthentic(opened);
	return opened;
}
function tryToOpen(body, how) {
	if (typeof body !== "string") return "envelope";
	const data = envelopeData(body);
	if (data === void 0) return "envelope";
	const sealed = takeApart(data, how.sealing);
	if (typeof sealed === "string") return sealed;
	const keys = keysFor(sealed, how.encryptionKeys);
	let reason = keys.length === 0 ? "unknown_key" : "decryption";
	for (const key of keys) {
		const opened = decrypt(sealed, key);
		const verified = "text" in opened ? verify(opened.text, key.id, how) : refuse$1(opened, key.id, how);
		if (typeof verified !== "string") return verified;
		if (verified !== "decryption") reason = verified;
	}
	return reason;
}
/** Wrong padding of AES-CBC takes the same steps as right padding. */
function refuse$1({ refused, badlyPadded: spoiled }, keyId, how) {
	if (spoiled !== void 0) verify(spoiled, keyId, how);
	return refused;
}
function verify(text, keyId, how) {
	const read = readWire(text);
	if (typeof read === "string") return read;
	const { kind, wire, ipn } = read;
	const signedText = signedString(kind, wire, how.signing);
	return how.signingKeys.some((key) => signatureMatches(signedText, ipn.signature, key)) ? {
		kind,
		wire,
		ipn,
		keyId,
		signedText
	} : "signature";
}
const envelopeStart = "{\"data\":\"";
const envelopeEnd = "\"}";
/** Exactly one field, `data`, a string: section 2.1. */
function envelopeData(body) {
	if (body.startsWith(envelopeStart) && body.endsWith(envelopeEnd)) {
		const data = body.slice(9, -2);
		if (!data.includes("\"") && !data.includes("\\")) return data;
	}
	if (!isPairOfTexts(body)) return void 0;
	const parsed = parseStrictly(body);
	if ("refused" in parsed || typeof parsed.value !== "object" || parsed.value === null) return void 0;
	const { data, ...others } = parsed.value;
	return typeof data === "string" && Object.keys(others).length === 0 ? data : void 0;
}
/**
* Whether a JSON text can only be an object with one key and a string value. The body is not authenticated yet: parsing
* arbitrary JSON in order to refuse it took up to 15 s and 1 GB for 16 MB (measured).
*/
function isPairOfTexts(body) {
	const key = afterSpace(body, 0) + 1;
	if (body[key - 1] !== "{") return false;
	const colon = afterText(body, key);
	if (colon === void 0 || body[colon] !== ":") return false;
	const close = afterText(body, colon + 1);
	return close !== void 0 && body[close] === "}" && afterSpace(body, close + 1) === body.length;
}
/** Returns the index after a string and the white space around it; undefined if there is no string. */
function afterText(body, from) {
	const start = afterSpace(body, from);
	if (body[start] !== "\"") return void 0;
	const end = endOfString(body, start);
	return end === 0 ? void 0 : afterSpace(body, end);
}
function afterSpace(body, from) {
	let at = from;
	while (body.charCodeAt(at) <= 32) at += 1;
	return at;
}
// packages/partner/src/source-addresses.ts
/** @throws Misused naming the entry that is neither an address nor a CIDR block. */
function addressList(option, entries) {
	if (!Array.isArray(entries)) throw new Misused("no_address", option);
	return entries.map((entry, at) => {
		const block = typeof entry === "string" ? readBlock(entry) : void 0;
		if (block === void 0) throw new Misused("no_address", `${option}[${at}]`);
		return block;
	});
}
/**
* Whether the sender, as far as the proxies are trusted, is in the list. X-Forwarded-For is read from its end, only
* while the writer of the entry is trusted. Anybody may have written the entries before that.
*/
function isFrom(sources, trustedProxies, remoteAddress, forwardedFor) {
	const entries = forwardedFor.split(",");
	let sender = readAddress(remoteAddress);
	while (sender !== void 0 && entries.length > 0 && holds(trustedProxies, sender)) {
		const entry = entries.pop()?.trim() ?? "";
		if (entry !== "") sender = readAddress(entry.replace(/^\[(.+)\](:\d+)?$/, "$1").replace(/^([\d.]+):\d+$/, "$1"));
	}
	return sender !== void 0 && holds(sources, sender);
}
function holds(list, address) {
	return list.some((block) => {
		const shift = BigInt(128 - block.prefixBits);
		return address >> shift === block.address >> shift;
	});
}
function readBlock(text) {
	const [written = "", bits, ...rest] = text.split("/");
	const address = readAddress(written);
	const lengthMax = written.includes(":") ? 128 : 32;
	const prefixBits = bits === void 0 ? lengthMax : /^\d{1,3}$/.test(bits) ? Number(bits) : NaN;
	if (address === void 0 || rest.length > 0 || !(prefixBits <= lengthMax)) return void 0;
	return {
		address,
		prefixBits: prefixBits + 128 - lengthMax
	};
}
const mapped = 65535n << 32n;
function readAddress(text) {
	if (!text.includes(":")) {
		const v4 = readV4(text);
		return v4 === void 0 ? void 0 : mapped | v4;
	}
	const [bare = ""] = text.split("%");
	const [head = "", tail, ...rest] = bare.split("::");
	const before = readGroups(head);
	const after = tail === void 0 ? [] : readGroups(tail);
	if (before === void 0 || after === void 0 || rest.length > 0) return void 0;
	const missing = 8 - before.length - after.length;
	if (tail === void 0 ? missing !== 0 : missing < 1) return void 0;
	return [
		...before,
		...new Array(missing).fill(0n),
		...after
	].reduce((address, group) => address << 16n | group, 0n);
}
/** Groups of 16 bits; the last may be an IPv4 address. */
function readGroups(text) {
	const groups = [];
	const parts = text === "" ? [] : text.split(":");
	for (const [at, part] of parts.entries()) {
		const v4 = at === parts.length - 1 && part.includes(".") ? readV4(part) : void 0;
		if (v4 !== void 0) groups.push(v4 >> 16n, v4 & 65535n);
		else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(BigInt(`0x${part}`));
		else return void 0;
	}
	return groups;
}
function readV4(text) {
	const parts = text.split(".");
	if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return void 0;
	return parts.reduce((address, part) => address << 8n | BigInt(part), 0n);
}
// packages/partner/src/options.ts
/**
* The maximum difference between webhook-timestamp and this machine's clock, in either direction, unless
* `freshnessSeconds` says otherwise.
*/
const freshnessSecondsDefault = 300;
/** The longest body that is accepted. A settlement of 50,000 transactions has about 5 MB. */
const bodyBytesMax = 16777216;
const optionNames = [
	"encryptionKey",
	"signingKey",
	"webhookSecret",
	"cipher",
	"encoding",
	"signing",
	"freshnessSeconds",
	"allowMissingHeaders",
	"sourceAddresses",
	"trustedProxies",
	"clock"
];
/** @throws Misused naming the option, the mistake and the remedy. */
function readSettings(options) {
	if (Object(options) !== options) throw new Misused("no_options", "receiver()");
	checkNames("", options, optionNames);
	const { sourceAddresses, trustedProxies = [] } = options;
	const settings = {
		cipher: options.cipher ?? defaultSealing.cipher,
		encoding: options.encoding ?? defaultSealing.encoding,
		signing: options.signing ?? defaultSigning,
		freshnessSeconds: options.freshnessSeconds ?? 300,
		allowMissingHeaders: options.allowMissingHeaders ?? false,
		sourceAddresses: sourceAddresses === void 0 ? void 0 : addressList("sourceAddresses", sourceAddresses),
		trustedProxies: addressList("trustedProxies", trustedProxies),
		clock: options.clock ?? { nowMs: () => Date.now() }
	};
	const problem = problemOf(settings);
	if (problem !== void 0) throw new Misused("wrong_option", "", { meaning: problem });
	const { allowMissingHeaders, cipher, signing } = settings;
	if (allowMissingHeaders && cipher === "aes-256-cbc" && signing.mode !== "whole") throw new Misused("headers_given_up");
	return settings;
}
function problemOf({ cipher, encoding, signing, freshnessSeconds, allowMissingHeaders, sourceAddresses, trustedProxies, clock }) {
	const [signingProblem] = signingProblems(signing);
	return [
		[ciphers.includes(cipher), `cipher must be one of ${ciphers.join(", ")}`],
		[encodings.includes(encoding), `encoding must be one of ${encodings.join(", ")}`],
		[signingProblem === void 0, signingProblem],
		[Number.isInteger(freshnessSeconds) && freshnessSeconds >= 1 && freshnessSeconds <= 86400, "freshnessSeconds must be a whole number from 1 to 86,400"],
		[typeof allowMissingHeaders === "boolean", "allowMissingHeaders must be true or false"],
		[typeof clock.nowMs === "function", "clock must be { nowMs() }"],
		[sourceAddresses?.length !== 0, "sourceAddresses is empty, so that everything would be refused"],
		[sourceAddresses !== void 0 || trustedProxies.length === 0, "trustedProxies says nothing without sourceAddresses"]
	].find(([kept]) => !kept)?.[1];
}
// packages/partner/src/jwe-key-id.ts
/** The kid in the message. Whether it belongs to a valid JWE header is found out by opening it. */
function jweKeyId(body) {
	const header = /"data"\s*:\s*"([A-Za-z0-9_-]{1,1024})\./.exec(body)?.[1];
	if (header === void 0) return "";
	try {
		const { kid } = Object(parseJson(Buffer.from(header, "base64url").toString("utf8")));
		return typeof kid === "string" ? kid : "";
	} catch {
		return "";
	}
}
/** A JWE names its key. A key that was configured without an id is tried for any name. */
function namedAsIn(body, keys) {
	if (keys.every(({ id }) => id !== "")) return keys;
	const named = jweKeyId(body);
	return keys.map((version) => version.id === "" ? {
		id: named,
		key: version.key
	} : version);
}
// packages/partner/src/refused.ts
const notAnIpn = "Nothing: this is not an IPN.";
const neverSent = "Tell the operator: Paybell never sends that.";
const registered = "with GET /v1/self";
/** Every reason: its meaning, and what to do about it. */
const refusals = {
	source_address: ["The request comes from an address outside sourceAddresses.", "If Paybell sent it, add its egress address. If you have a proxy in front, add it to trustedProxies."],
	source_unknown: ["The source address is unknown, so sourceAddresses cannot be checked.", "Set remoteAddress of the handler, or pass the address to open() as its third argument."],
	too_large: ["The body is longer than any IPN; it was not read.", notAnIpn],
	missing_headers: ["webhook-id, webhook-timestamp or webhook-signature is missing.", "Let your proxy pass them, and give open() the request's headers. If it cannot, see allowMissingHeaders."],
	not_fresh: ["webhook-timestamp is too far from this machine's clock.", "Set the clock (NTP). If it is right, the message is old and may be a replay."],
	webhook_signature: ["webhook-signature does not match this body under any webhookSecret.", "Compare webhookSecret with the one that registration or the last rotation showed. If it is right, the body is not the one that was sent: pass the raw bytes, before any JSON parser or proxy rewrites them."],
	empty_body: ["The body is empty.", "Read the request's body once, before anything else does, and pass its bytes."],
	compressed_body: ["The body is gzip; Paybell sends it plain.", "Have your proxy leave the body as it is."],
	html_body: ["The body is a web page or XML.", "Something else answers or sends here: check what is in front of your server."],
	stringified_body: ["The body is an object that was converted to a string, or a string within a string.", "Pass the raw bytes: not String(body), nor JSON.stringify() of a string."],
	rewritten_body: ["The body was parsed and re-serialised: as Paybell wrote it, its signature is right.", "Pass the raw bytes: read the request before the JSON parser does, and never JSON.stringify() it again."],
	swapped_keys: ["A key is set under the name of another.", "Compare the three with what registration showed."],
	wrong_cipher: ["The IPN is encrypted with another cipher than the configured one.", `Compare cipher ${registered}.`],
	wrong_encoding: ["data is in another encoding than the configured one.", `Compare encoding ${registered}.`],
	wrong_signing: ["The IPN is signed in another way than the configured one.", `Compare signing ${registered}.`],
	envelope: ["The body is not a JSON object with the one field \"data\".", notAnIpn],
	encoding: ["data is not in the configured encoding.", `Compare cipher and encoding ${registered}.`],
	jwe_header: ["data is not a JWE with alg dir and enc A256GCM.", `Compare cipher ${registered}.`],
	unknown_key: ["The JWE names a key version that is not among encryptionKey.", "Install the version that the kid names."],
	decryption: ["No encryptionKey decrypts it.", `Compare encryptionKey with the one that registration or the last rotation showed (the header paybell-key names its version), and cipher ${registered}.`],
	not_text: ["The decrypted content is not UTF-8 text.", `Compare cipher ${registered}.`],
	not_json: ["The decrypted content is not a JSON object.", `Compare cipher ${registered}.`],
	duplicate_key: ["The IPN has a duplicate JSON key.", neverSent],
	two_names: ["The IPN has a field under both of its names.", neverSent],
	wrong_type: ["A value of the IPN is not a string, or settlementList is not a list of objects.", neverSent],
	signature: ["The IPN was decrypted, but its signature does not match the signed string.", `Compare signingKey with the one you were given, and signing (mode and field lists) ${registered}.`]
};
/**
* The IPN is not authentic, or not fresh.
*
* Every cause looks the same from outside (message, code, stack, JSON), because an answer that distinguishes them helps
* a forger. `reason`, `remedy` and `hint` are getters on the prototype, for your own log only, never for an answer.
* None contains a key or any of the decrypted content.
*/
var IpnRefused = class extends PaybellError {
	code = "not_authentic";
	#reason;
	#finding;
	constructor(reason, finding = "") {
		super("The IPN is not authentic.");
		this.#reason = reason;
		this.#finding = finding;
		this.stack = `IpnRefused: ${this.message}`;
	}
	get name() {
		return "IpnRefused";
	}
	get reason() {
		return this.#reason;
	}
	/** The remedy. */
	get remedy() {
		return refusals[this.#reason][1];
	}
	/** The finding, and what to do. */
	get hint() {
		return `${this.#finding || refusals[this.#reason][0]} ${this.remedy}`;
	}
};
// packages/partner/src/diagnosis.ts
/** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
const triedBytesMax = 1048576;
/**
* Explains a wrong webhook-signature that is not a forgery. The cost is the same for every forgery, and reveals nothing
* to its sender.
*/
function explainHeaders(body, header, { encryption, signingKeys, webhook }) {
	const mistake = bodyMistake(body);
	if (mistake !== void 0) return new IpnRefused(mistake);
	if (body.length > triedBytesMax) return new IpnRefused("webhook_signature");
	const matches = (text, keys) => webhookSignatureMatches(header(headerNames.signature) ?? "", header(headerNames.id) ?? "", header(headerNames.timestamp) ?? "", text, keys);
	const data = dataOf(body.toString("utf8"));
	if (data !== void 0 && matches(JSON.stringify({ data }), webhook)) return new IpnRefused("rewritten_body");
	for (const [option, keys] of [["encryptionKey", encryption.map(({ key }) => key)], ["signingKey", signingKeys]]) if (matches(body, keys)) return new IpnRefused("swapped_keys", `webhook-signature is made with what you gave as ${option}.`);
	return new IpnRefused("webhook_signature");
}
/** Returns the mistake that the body itself shows, whatever its sender. */
function bodyMistake(body) {
	if (body.length === 0) return "empty_body";
	if (body[0] === 31 && body[1] === 139) return "compressed_body";
	const start = body.toString("latin1", 0, 64).trimStart();
	if (start.startsWith("<")) return "html_body";
	if (start.startsWith("[object ") || start.startsWith("\"")) return "stringified_body";
}
/** The body is not authenticated, so it is parsed as JSON only if it can contain nothing but `data`. */
function dataOf(body) {
	const data = /^\s*\{\s*"data"\s*:\s*("[^"]*")\s*\}\s*$/.exec(body)?.[1];
	try {
		return data === void 0 ? void 0 : JSON.parse(data);
	} catch {
		return;
	}
}
/** Explains why an IPN from the holder of the webhook secret cannot be opened: another setting may fit. */
function explainContent(body, reason, setup) {
	if (body.length > triedBytesMax) return void 0;
	return reason === "signature" ? explainSignature(body, setup) : explainSeal(body, setup);
}
function explainSeal(body, setup) {
	const { sealing, encryption, signingKeys, webhook } = setup;
	for (const tried of sealings) {
		const { cipher, encoding } = tried;
		if (!opens(body, {
			...setup,
			sealing: tried
		}, encryption)) continue;
		if (cipher !== sealing.cipher) return new IpnRefused("wrong_cipher", `cipher is ${sealing.cipher}, and it is sealed with ${cipher}.`);
		if (encoding !== sealing.encoding && cipher !== "jwe") return new IpnRefused("wrong_encoding", `encoding is ${sealing.encoding}, and data is ${encoding}.`);
	}
	for (const [option, keys] of [["signingKey", signingKeys], ["webhookSecret", webhook]]) if (opens(body, setup, keys.map((key) => ({
		id: "",
		key
	})))) return new IpnRefused("swapped_keys", `It opens with what you gave as ${option}.`);
}
function explainSignature(body, setup) {
	const { encryption, webhook } = setup;
	for (const signing of [{ mode: "whole" }, { mode: "fields" }]) if (tryOpening(body, {
		...setup,
		signing
	}, encryption) === "opened") return new IpnRefused("wrong_signing", `It is signed as signing: { mode: "${signing.mode}" } says.`);
	for (const [option, signingKeys] of [["encryptionKey", encryption.map(({ key }) => key)], ["webhookSecret", webhook]]) if (tryOpening(body, {
		...setup,
		signingKeys
	}, encryption) === "opened") return new IpnRefused("swapped_keys", `It is signed with what you gave as ${option}.`);
}
/** AES-CBC decrypts under one wrong key in 256, to content that is not JSON. */
function opens(body, setup, keys) {
	const tried = tryOpening(body, setup, keys);
	return tried === "opened" || tried === "signature";
}
function tryOpening(body, { sealing, signing, signingKeys }, encryptionKeys) {
	try {
		openAndVerify(body, {
			sealing,
			signing,
			signingKeys,
			encryptionKeys: sealing.cipher === "jwe" ? namedAsIn(body, encryptionKeys) : encryptionKeys
		});
		return "opened";
	} catch (error) {
		if (error instanceof NotAuthentic) return error.reason;
		throw error;
	}
}
// packages/partner/src/headers.ts
function headerReader(headers) {
	if (headers instanceof Promise) throw new Misused("missing_await", "The second argument of open(), the headers,");
	if (typeof headers !== "object" || headers === null) throw new Misused("no_headers");
	if (headers instanceof Headers) return (name) => headers.get(name) ?? void 0;
	const named = headers[headerNames.id] === void 0 ? inLowerCase(headers) : headers;
	return (name) => {
		const value = named[name];
		return typeof value === "object" ? value.join(", ") : value;
	};
}
function inLowerCase(headers) {
	return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
function readAttempt(value) {
	return value !== void 0 && /^[1-9][0-9]{0,8}$/.test(value) ? Number(value) : void 0;
}
function readCommand(value, kind) {
	const command = notifiedCommands.find((known) => known === value);
	return command === "SETTLEMENT" === (kind === "settlement") ? command : void 0;
}
/** Makes a stranger's text fit for a log line: quoted, short, without control characters. */
function quoted(value) {
	return JSON.stringify(value.slice(0, 64)).replaceAll(/[^\x20-\x7e]/g, "?");
}
// packages/partner/src/keys.ts
/** A key without an id has the empty id. */
function encryptionKeys(keys) {
	return versions("encryptionKey", keys).map(({ id, text, where }) => sealingKey(id, bytes(where, text)));
}
function signingKeys(keys) {
	return versions("signingKey", keys).map(({ text, where }) => hmacKey(bytes(where, text)));
}
const prefix = "whsec_";
function webhookKeys(keys) {
	return versions("webhookSecret", keys).map(({ text, where }) => {
		refuse(where, [
			[text === "", "empty_key"],
			[text.trim() !== text, "white_space_in_key"],
			[!text.startsWith(prefix), "no_whsec_prefix"],
			[text.startsWith(prefix, 6), "two_whsec_prefixes"]
		]);
		bytes(where, text.slice(6));
		return webhookKey(text);
	});
}
/** A key used for two purposes weakens both. Usually it is one environment variable pasted twice. */
function refuseSharedKeys(given) {
	const seen = /* @__PURE__ */ new Map();
	for (const option of [
		"encryptionKey",
		"signingKey",
		"webhookSecret"
	]) for (const { text, where } of versions(option, given[option])) {
		const bare = text.startsWith(prefix) ? text.slice(6) : text;
		const twin = seen.get(bare);
		if (twin !== void 0) throw new Misused("shared_key", where, { meaning: `is the same key as ${twin}` });
		seen.set(bare, where);
	}
}
function versions(option, keys) {
	if (typeof keys === "string") return [{
		id: "",
		text: keys,
		where: option
	}];
	const list = keys;
	refuse(option, [
		[keys === void 0 || keys === null, "missing_key"],
		[keys instanceof Promise, "missing_await"],
		[!Array.isArray(keys), "key_not_text"],
		[list?.length === 0, "no_key_version"]
	]);
	return list.map((version, at) => {
		const { id = "", key } = Object(version);
		const where = `${option}[${at}].key`;
		if (typeof id !== "string") throw new Misused("key_not_text", `${option}[${at}].id`);
		refuse(where, [[key instanceof Promise, "missing_await"]]);
		if (typeof key !== "string") throw new Misused("key_not_text", where);
		return {
			id,
			text: key,
			where
		};
	});
}
/** @throws Misused for the first of these mistakes that was made */
function refuse(where, mistakes) {
	const found = mistakes.find(([made]) => made);
	if (found !== void 0) throw new Misused(found[1], where);
}
const keyBytes = 32;
const hexOfKey = /^[0-9a-fA-F]{64}$/;
/**
* Strict: a key that is slightly wrong must fail here, at startup, and not as "not authentic" at three in the morning.
*/
function bytes(where, text) {
	const raw = Buffer.from(text, "base64");
	if (raw.length === keyBytes && raw.toString("base64") === text) return raw;
	const inner = raw.toString("latin1");
	refuse(where, [
		[text === "", "empty_key"],
		[text.startsWith(prefix), "webhook_secret_as_key"],
		[text.startsWith("pb_"), "api_key_as_key"],
		[text.trim() !== text, "white_space_in_key"],
		[hexOfKey.test(text), "hexadecimal_key"],
		[raw.length === keyBytes, "base64url_key"],
		[hexOfKey.test(inner) || Buffer.from(inner, "base64").toString("base64") === inner, "key_encoded_twice"],
		[!/^[A-Za-z0-9+/]+={0,2}$/.test(text), "key_not_base64"]
	]);
	throw new Misused("key_length", where, { meaning: `has ${raw.length} bytes instead of ${keyBytes}` });
}
// packages/partner/src/receiver.ts
/**
* Creates a receiver, which verifies and opens IPNs with the keys and the agreement of your registration.
*
* @throws Misused naming the option, the mistake and the remedy; never the value of a key
*/
function receiver(options) {
	const settings = readSettings(options);
	const { encryptionKey, signingKey, webhookSecret } = options;
	const setup = {
		sealing: {
			cipher: settings.cipher,
			encoding: settings.encoding
		},
		signing: settings.signing,
		encryption: encryptionKeys(encryptionKey),
		signingKeys: signingKeys(signingKey),
		webhook: webhookKeys(webhookSecret)
	};
	refuseSharedKeys({
		encryptionKey,
		signingKey,
		webhookSecret
	});
	const { sealing, encryption } = setup;
	function open(rawBody, headers, remoteAddress) {
		const body = bufferOf(rawBody);
		const header = headerReader(headers);
		verifySource(remoteAddress, header);
		if (body.length > 16777216) throw new IpnRefused("too_large");
		const notificationId = verifyHeaders(body, header);
		return describe(openBody(body, header, notificationId !== void 0), notificationId, header);
	}
	function verifySource(remoteAddress, header) {
		const { sourceAddresses, trustedProxies } = settings;
		if (sourceAddresses === void 0) return;
		if (!remoteAddress) throw new IpnRefused("source_unknown");
		if (!isFrom(sourceAddresses, trustedProxies, remoteAddress, header("x-forwarded-for") ?? "")) throw new IpnRefused("source_address");
	}
	/**
	* Before anything is decrypted: a sender without the webhook secret gets no further than a constant-time comparison.
	*/
	function verifyHeaders(body, header) {
		const id = header(headerNames.id);
		const timestamp = header(headerNames.timestamp);
		const signature = header(headerNames.signature);
		if (id === void 0 || timestamp === void 0 || signature === void 0) {
			const noneIsThere = id === void 0 && timestamp === void 0 && signature === void 0;
			if (settings.allowMissingHeaders && noneIsThere) return void 0;
			throw new IpnRefused("missing_headers");
		}
		if (!webhookSignatureMatches(signature, id, timestamp, body, setup.webhook)) throw explainHeaders(body, header, setup);
		const ageSeconds = Math.floor(settings.clock.nowMs() / 1e3) - Number(timestamp);
		if (Math.abs(ageSeconds) > settings.freshnessSeconds) throw new IpnRefused("not_fresh", ageFinding(ageSeconds));
		return id;
	}
	function ageFinding(ageSeconds) {
		return `${`webhook-timestamp lies ${Math.abs(ageSeconds)} s ${ageSeconds > 0 ? "in the past" : "in the future"}, by this machine's clock`}; ${settings.freshnessSeconds} s are allowed.`;
	}
	function openBody(body, header, isVerified) {
		const text = body.toString("utf8");
		try {
			const keys = sealing.cipher === "jwe" ? namedAsIn(text, encryption) : encryption;
			return openAndVerify(text, {
				...setup,
				encryptionKeys: keys
			});
		} catch (error) {
			if (!(error instanceof NotAuthentic)) throw error;
			throw (isVerified ? explainContent(text, error.reason, setup) : void 0) ?? new IpnRefused(bodyMistake(body) ?? error.reason, keyFinding(error.reason, text, header));
		}
	}
	function keyFinding(reason, text, header) {
		if (reason !== "decryption" && reason !== "unknown_key") return "";
		const named = sealing.cipher === "jwe" ? jweKeyId(text) : header(headerNames.key);
		return named ? `No encryptionKey decrypts it, and the message names the key version ${quoted(named)}.` : "";
	}
	return { open };
}
function describe(opened, notificationId, header) {
	return {
		notificationId,
		attempt: readAttempt(header(headerNames.attempt)),
		command: readCommand(header(headerNames.command), opened.kind),
		originalTransactionId: header(headerNames.originalTransaction),
		outOfOrder: header(headerNames.outOfOrder) === "1",
		keyId: opened.keyId === "" ? header(headerNames.key) ?? "" : opened.keyId,
		kind: opened.kind,
		ipn: opened.ipn
	};
}
function bufferOf(rawBody) {
	if (typeof rawBody === "string") return Buffer.from(rawBody, "utf8");
	if (Buffer.isBuffer(rawBody)) return rawBody;
	if (rawBody instanceof Uint8Array) return Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
	if (rawBody instanceof Promise) throw new Misused("missing_await", "The raw body");
	throw new Misused("not_raw");
}
// packages/partner/src/stores/serializer.ts
/** Runs functions of the same name one after the other, in the order of the calls. */
function serializer() {
	const last = /* @__PURE__ */ new Map();
	return async (name, run) => {
		const before = last.get(name);
		const mine = before === void 0 ? run() : before.then(run, run);
		last.set(name, mine);
		try {
			return await mine;
		} finally {
			if (last.get(name) === mine) last.delete(name);
		}
	};
}
// packages/partner/src/stores/memory.ts
/**
* Records IPNs in this process only, until it ends: for tests, and for effects that end with the process too.
*
* @param ipnsMax beyond it the oldest are forgotten; default 100,000
*/
function memoryStore(ipnsMax = 1e5) {
	const seenIpns = /* @__PURE__ */ new Map();
	const chains = /* @__PURE__ */ new Map();
	const inTurn = serializer();
	function remember(seen) {
		seenIpns.set(seen.id, seen);
		chains.set(seen.chain, (chains.get(seen.chain) ?? /* @__PURE__ */ new Set()).add(seen));
		const [oldest] = seenIpns.values();
		if (seenIpns.size > ipnsMax && oldest !== void 0) forget(oldest);
	}
	function forget(seen) {
		seenIpns.delete(seen.id);
		const chain = chains.get(seen.chain);
		chain?.delete(seen);
		if (chain?.size === 0) chains.delete(seen.chain);
	}
	return { once: (seen, runs) => inTurn(seen.chain, async () => {
		if (seenIpns.has(seen.id)) return "duplicate";
		await runs(void 0, [...chains.get(seen.chain) ?? []].map(({ facts }) => facts));
		remember(seen);
		return "processed";
	}) };
}
export { IpnRefused, Misused, PaybellError, bodyBytesMax, deduplicate, freshnessSecondsDefault, memoryStore, receiver };

// Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.
//
//   dotnet run agreement.json                   listens on PORT, or 8080; stores in the folder inbox
//   dotnet run -- --vectors ../../vectors.json  runs the test vectors

using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

if (args[0] == "--vectors") return Vectors.Run(args[1]) ? 0 : 1;

var receiver = new Receiver(JsonDocument.Parse(File.ReadAllText(args[0])).RootElement);
Directory.CreateDirectory("inbox");
var builder = WebApplication.CreateBuilder();
builder.WebHost.UseUrls("http://127.0.0.1:" + (Environment.GetEnvironmentVariable("PORT") ?? "8080"));
builder.WebHost.ConfigureKestrel(kestrel => kestrel.Limits.MaxRequestBodySize = Receiver.BodyBytesMax);
var app = builder.Build();
app.MapPost("/ipn", async (HttpRequest request) =>
{
    using var body = new MemoryStream();
    await request.Body.CopyToAsync(body); // Kestrel itself answers 413.
    try
    {
        var ipn = receiver.Verify(body.ToArray(), name => request.Headers[name].ToString(), DateTimeOffset.UtcNow);
        var isNew = Receiver.StoreOnce(ipn);
        app.Logger.LogInformation("{Type} {Id}, new: {IsNew}", ipn["transaction_type"], ipn["id"], isNew);
        return Results.StatusCode(204);
    }
    catch (Refused why)
    {
        app.Logger.LogWarning("refused: {Why}", why.Message);
        return Results.StatusCode(400); // Any other exception is a 500, which brings the IPN again.
    }
});
app.Run();
return 0;

/// <summary>A message that is not authentic or not as agreed. Its text is for your log, never for the sender.</summary>
public sealed class Refused : Exception
{
    public Refused(string why) : base(why) { }

    public static void Unless(bool isSo, string why)
    {
        if (!isSo) throw new Refused(why);
    }
}

public sealed class Receiver
{
    public const int FreshnessSeconds = 300;
    public const int BodyBytesMax = 16 * 1024 * 1024;

    // The tables of the specification, section 2. After a slash: a second name of the field.
    static readonly string[] Card = (
        "aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme currency " +
        "deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName " +
        "merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime " +
        "transaction_type signature").Split(' ');
    static readonly string[] Settlement = (
        "batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId saleQuantity " +
        "saleTotalAmount status tid totalAmount transaction_time transaction_type voidQuantity voidTotalAmount " +
        "settlementList signature").Split(' ');
    static readonly string[] Entry = { "reqId/reqID", "refNo" };
    static readonly string[] CardSigned = (
        "aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid mid traceNo " +
        "batchNo").Split(' ');
    static readonly string[] SettlementSigned = (
        "batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount totalAmount tid mid").Split(' ');

    // What was agreed with the operator: never taken from a message. Several keys are the versions of a rotation.
    readonly string cipher, encoding;
    readonly Dictionary<string, object> signing;
    readonly List<(string Id, byte[] Key)> encryptionKeys;
    readonly List<byte[]> signingKeys, webhookSecrets;

    public Receiver(JsonElement agreed)
    {
        cipher = agreed.GetProperty("cipher").GetString();
        encoding = agreed.GetProperty("encoding").GetString();
        signing = (Dictionary<string, object>)Value(agreed.GetProperty("signing"));
        encryptionKeys = agreed.GetProperty("encryptionKeys").EnumerateArray()
            .Select(one => (one.GetProperty("id").GetString(), Key(one.GetProperty("key")))).ToList();
        signingKeys = agreed.GetProperty("signingKeys").EnumerateArray().Select(Key).ToList();
        webhookSecrets = agreed.GetProperty("webhookSecrets").EnumerateArray().Select(Key).ToList();
    }

    static byte[] Key(JsonElement text)
    {
        var raw = Decode(text.GetString().Replace("whsec_", ""), "base64");
        return raw.Length == 32 ? raw : throw new ArgumentException("a key is the base64 of 32 bytes");
    }

    /// <summary>The IPN by the tables' names, or Refused. The body is the bytes as received.</summary>
    public Dictionary<string, object> Verify(byte[] body, Func<string, string> header, DateTimeOffset now)
    {
        CheckHeaders(body, header, now);
        var envelope = Parse(body);
        Refused.Unless(envelope.Count == 1 && envelope.GetValueOrDefault("data") is string, "the body is not {data}");
        var (named, iv, content, tag, authenticated) = TakeApart((string)envelope["data"]);
        var refused = new Refused("no key has this kid");
        foreach (var (id, key) in encryptionKeys)
        {
            if (named != null && id != "" && id != named) continue;
            try
            {
                // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
                return CheckContent(Decrypt(key, iv, content, tag, authenticated));
            }
            catch (Refused why)
            {
                refused = why;
            }
        }
        throw refused;
    }

    // Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends.
    void CheckHeaders(byte[] body, Func<string, string> header, DateTimeOffset now)
    {
        string id = header("webhook-id"), timestamp = header("webhook-timestamp");
        var isShaped = Regex.IsMatch(id, @"\A[^.\s]{1,256}\z") && Regex.IsMatch(timestamp, @"\A[0-9]{1,12}\z");
        Refused.Unless(isShaped, "webhook-id or webhook-timestamp is missing or malformed");
        var signed = Encoding.UTF8.GetBytes($"{id}.{timestamp}.").Concat(body).ToArray();
        var entries = header("webhook-signature").Split(' ').Select(entry => Encoding.UTF8.GetBytes(entry)).ToList();
        var isRight = webhookSecrets
            .Select(secret => "v1," + Convert.ToBase64String(HMACSHA256.HashData(secret, signed)))
            .Select(expected => Encoding.UTF8.GetBytes(expected))
            .Any(expected => entries.Any(entry => CryptographicOperations.FixedTimeEquals(expected, entry)));
        Refused.Unless(isRight, "webhook-signature does not match the body");
        var age = now.ToUnixTimeSeconds() - long.Parse(timestamp);
        Refused.Unless(Math.Abs(age) <= FreshnessSeconds, "webhook-timestamp is too far from this clock");
    }

    // The id of the key where the message names it, the IV, the ciphertext, its tag, the additional authenticated data.
    (string Named, byte[] Iv, byte[] Content, byte[] Tag, byte[] Authenticated) TakeApart(string data)
    {
        if (cipher != "jwe")
        {
            var raw = Decode(data, encoding);
            int ivBytes = cipher == "aes-256-cbc" ? 16 : 12, tagBytes = cipher == "aes-256-cbc" ? 0 : 16;
            Refused.Unless(raw.Length >= ivBytes + tagBytes, "data is too short");
            var content = raw.Skip(ivBytes).Take(raw.Length - ivBytes - tagBytes).ToArray();
            return (null, raw.Take(ivBytes).ToArray(), content, raw.Skip(raw.Length - tagBytes).ToArray(), null);
        }
        var parts = data.Split('.');
        Refused.Unless(parts.Length == 5 && parts[1] == "", "the JWE does not have the five parts of dir");
        byte[] iv = Decode(parts[2], "base64url"), tag = Decode(parts[4], "base64url");
        var fields = Parse(Decode(parts[0], "base64url"));
        string Field(string name) => fields.GetValueOrDefault(name) as string;
        var isUsual = Field("alg") == "dir" && Field("enc") == "A256GCM" && Field("kid") != null
            && !fields.ContainsKey("zip") && !fields.ContainsKey("crit");
        Refused.Unless(isUsual, "the JWE is not as agreed");
        Refused.Unless(iv.Length == 12 && tag.Length == 16, "the JWE has another IV or tag");
        return (Field("kid"), iv, Decode(parts[3], "base64url"), tag, Encoding.UTF8.GetBytes(parts[0]));
    }

    byte[] Decrypt(byte[] key, byte[] iv, byte[] content, byte[] tag, byte[] authenticated)
    {
        try
        {
            if (cipher == "aes-256-cbc")
            {
                using var aes = Aes.Create();
                aes.Key = key;
                return aes.DecryptCbc(content, iv);
            }
            using var gcm = new AesGcm(key, 16);
            var plain = new byte[content.Length];
            gcm.Decrypt(iv, content, tag, plain, authenticated);
            return plain;
        }
        catch (CryptographicException)
        {
            throw new Refused("decryption failed");
        }
    }

    Dictionary<string, object> CheckContent(byte[] plain)
    {
        var wire = Parse(plain);
        var settles = wire.ContainsKey("saleQuantity")
            || wire.GetValueOrDefault("transaction_type") as string == "SETTLE" && wire.ContainsKey("settlementList");
        var ipn = ByTableNames(wire, settles ? Settlement : Card);
        string text;
        if ((string)signing["mode"] == "whole")
        {
            wire.Remove("signature");
            text = Canonical(wire);
        }
        else
        {
            var agreed = signing.GetValueOrDefault(settles ? "settlement" : "card") as List<object>;
            var names = agreed?.Cast<string>() ?? (settles ? SettlementSigned : CardSigned);
            text = string.Join("&", names.Select(name => $"{name}={ipn[name]}"));
        }
        var signature = Decode((string)ipn["signature"], "hex");
        var signed = Encoding.UTF8.GetBytes(text);
        var isRight = signingKeys
            .Any(key => CryptographicOperations.FixedTimeEquals(HMACSHA256.HashData(key, signed), signature));
        Refused.Unless(isRight, "signature does not match the signed string");
        if (!settles) ipn["cardScheme"] = ((string)ipn["cardScheme"]).ToUpperInvariant();
        return ipn;
    }

    static Dictionary<string, object> ByTableNames(Dictionary<string, object> wire, string[] table)
    {
        var ipn = new Dictionary<string, object>();
        foreach (var names in table.Select(field => field.Split('/')))
        {
            var found = names.Where(wire.ContainsKey).Select(name => wire[name]).ToList();
            Refused.Unless(found.Count <= 1, names[0] + " appears under two names");
            if (names[0] != "settlementList")
            {
                Refused.Unless(found.All(value => value is string), names[0] + " is not a string");
                ipn[names[0]] = found.FirstOrDefault() ?? "";
                continue;
            }
            var list = found.Count == 0 ? new List<object>() : found[0] as List<object>;
            var isList = list != null && list.All(entry => entry is Dictionary<string, object>);
            Refused.Unless(isList, "settlementList is not a list of objects");
            ipn[names[0]] = list.Select(one => (object)ByTableNames((Dictionary<string, object>)one, Entry)).ToList();
        }
        return ipn;
    }

    static readonly UTF8Encoding StrictUtf8 = new UTF8Encoding(false, throwOnInvalidBytes: true);

    // One JSON object in UTF-8 whose scalars are strings, without duplicate keys or lone surrogates.
    static Dictionary<string, object> Parse(byte[] raw)
    {
        try
        {
            using var document = JsonDocument.Parse(StrictUtf8.GetString(raw));
            return Value(document.RootElement) as Dictionary<string, object> ?? throw new Refused("not a JSON object");
        }
        catch (Exception error) when (error is JsonException or InvalidOperationException or ArgumentException)
        {
            throw new Refused("not valid JSON");
        }
    }

    internal static object Value(JsonElement element)
    {
        if (element.ValueKind == JsonValueKind.String) return element.GetString(); // throws at a lone surrogate
        if (element.ValueKind == JsonValueKind.Array) return element.EnumerateArray().Select(Value).ToList();
        if (element.ValueKind != JsonValueKind.Object) throw new Refused("a value is not a string");
        var fields = new Dictionary<string, object>();
        foreach (var field in element.EnumerateObject()) fields.Add(field.Name, Value(field.Value)); // throws at a twin
        return fields;
    }

    // RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, no needless escapes.
    internal static string Canonical(object value)
    {
        if (value is List<object> list) return "[" + string.Join(",", list.Select(Canonical)) + "]";
        if (value is Dictionary<string, object> fields)
        {
            var names = fields.Keys.OrderBy(name => name, StringComparer.Ordinal);
            return "{" + string.Join(",", names.Select(name => Canonical(name) + ":" + Canonical(fields[name]))) + "}";
        }
        var text = new StringBuilder("\"");
        foreach (var letter in (string)value)
        {
            var known = "\"\\\b\f\n\r\t".IndexOf(letter);
            if (known >= 0) text.Append('\\').Append("\"\\bfnrt"[known]);
            else if (letter < ' ') text.Append($"\\u{(int)letter:x4}");
            else text.Append(letter);
        }
        return text.Append('"').ToString();
    }

    // The bytes, if the text is exactly what an encoder writes: decoders accept white space and stray bits.
    static byte[] Decode(string text, string encoding)
    {
        try
        {
            if (encoding == "hex") return Convert.FromHexString(text);
            var isUrl = encoding == "base64url";
            var padding = new string('=', (4 - text.Length % 4) % 4);
            var raw = Convert.FromBase64String(isUrl ? text.Replace('-', '+').Replace('_', '/') + padding : text);
            var again = Convert.ToBase64String(raw);
            if (isUrl) again = again.Replace('+', '-').Replace('/', '_').TrimEnd('=');
            return again == text ? raw : throw new Refused("not as " + encoding + " is written");
        }
        catch (FormatException)
        {
            throw new Refused("not " + encoding);
        }
    }

    /// <summary>Returns whether it was new. A table with a unique key on the id, in one transaction with your work, is
    /// better.</summary>
    public static bool StoreOnce(Dictionary<string, object> ipn)
    {
        var id = (string)ipn["id"];
        if (!Regex.IsMatch(id, @"\A[0-9A-Za-z-]{1,64}\z")) throw new IOException("the id is no file name");
        string path = Path.Combine("inbox", id + ".json"), temporary = Path.Combine("inbox", "." + Guid.NewGuid());
        using (var file = new FileStream(temporary, FileMode.CreateNew))
        {
            file.Write(Encoding.UTF8.GetBytes(Canonical(ipn)));
            file.Flush(flushToDisk: true);
        }
        try
        {
            File.Move(temporary, path); // Of two at once, one fails.
            return true;
        }
        catch (IOException) when (File.Exists(path))
        {
            return false;
        }
        finally
        {
            File.Delete(temporary);
        }
    }
}

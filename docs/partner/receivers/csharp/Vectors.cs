using System.Text;
using System.Text.Json;

/// <summary>Runs the test vectors on the receiver.</summary>
static class Vectors
{
    public static bool Run(string file)
    {
        var passed = true;
        var vectors = JsonDocument.Parse(File.ReadAllText(file)).RootElement.GetProperty("vectors");
        foreach (var vector in vectors.EnumerateArray())
        {
            string Header(string name) =>
                vector.GetProperty("headers").TryGetProperty(name, out var value) ? value.GetString() : "";
            string found = null;
            try
            {
                var body = Encoding.UTF8.GetBytes(vector.GetProperty("body").GetString());
                var now = DateTimeOffset.FromUnixTimeSeconds(vector.GetProperty("nowSeconds").GetInt64());
                found = Receiver.Canonical(new Receiver(vector).Verify(body, Header, now));
            }
            catch (Refused)
            {
                // Whether that is right, the vector says.
            }
            var isRight = found == (vector.TryGetProperty("ipn", out var ipn) ? Receiver.Canonical(Receiver.Value(ipn)) : null);
            Console.WriteLine((isRight ? "ok   " : "FAIL ") + vector.GetProperty("name").GetString());
            passed = passed && isRight;
        }
        return passed;
    }
}

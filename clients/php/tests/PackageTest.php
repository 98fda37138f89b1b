<?php

declare(strict_types=1);

namespace Paybell\Tests;

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\ServerRequest;
use Paybell\Callback;
use Paybell\Handler;
use Paybell\KeyFile;
use Paybell\Keys;
use Paybell\PaybellError;
use Paybell\Received;
use Paybell\Refused;
use PHPUnit\Framework\TestCase;

use function Paybell\catchUp;
use function Paybell\contract;
use function Paybell\open;
use function Paybell\sample;

use const Paybell\BODY_BYTES_MAX;
use const Paybell\SAMPLE_KEYS;

/** `phpunit --bootstrap vendor/autoload.php PackageTest.php`, with the package installed. */
final class PackageTest extends TestCase
{
    private const NEW = ['id' => '2', 'key' => 'BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ='];
    private string $folder;
    private string $log;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/paybell-' . bin2hex(random_bytes(8));
        mkdir($this->folder);
        $this->log = "$this->folder/log";
        ini_set('error_log', $this->log);
        touch($this->log);
    }

    protected function tearDown(): void
    {
        foreach (glob("$this->folder/{*/,}*", GLOB_BRACE) as $path) {
            is_dir($path) ? rmdir($path) : unlink($path);
        }
        rmdir($this->folder);
    }

    private function codeOf(callable $action): string
    {
        try {
            $action();
        } catch (PaybellError $error) {
            $this->assertNotSame('', $error->remedy, $error->getCode());
            return $error->getCode();
        }
        return '';
    }

    public function testEverySampleOpensInEveryCipherEncodingAndWayOfSigning(): void
    {
        foreach (array_keys(contract('samples')) as $kind) {
            foreach (contract('settings')['cipher'] as $cipher) {
                foreach (contract('settings')['encoding'] as $encoding) {
                    foreach (['fields', 'whole'] as $mode) {
                        $keys = [...SAMPLE_KEYS, ...compact('cipher', 'encoding'), 'signing' => ['mode' => $mode]];
                        [$body, $headers, $ipn] = sample($kind, $keys);
                        $received = open($body, $headers, $keys);
                        $this->assertEquals($ipn, json_decode(json_encode($received->ipn), true));
                        $class = $kind === 'settlement' ? \Paybell\SettlementIpn::class : \Paybell\CardIpn::class;
                        $this->assertInstanceOf($class, $received->ipn);
                    }
                }
            }
        }
    }

    public function testAFieldOrAKindThatDoesNotExistIsRefused(): void
    {
        $this->assertSame('wrong_option', $this->codeOf(fn() => sample('sale', fields: ['ammount' => '1'])));
        $this->assertSame('wrong_option', $this->codeOf(fn() => sample('sail')));
    }

    public function testHeadersMayHaveAnyCaseAndSeveralValues(): void
    {
        [$body, $headers] = sample();
        $psr7 = array_map(fn(string $value) => [$value], array_change_key_case($headers, CASE_UPPER));
        $this->assertSame('SALE', open($body, $psr7, SAMPLE_KEYS)->headers['paybell-command']);
    }

    public function testTheSettingDecidesWhatIsSignedAndRead(): void
    {
        $extended = [...SAMPLE_KEYS, 'fields' => 'extended'];
        [$body, $headers] = sample('preauth_complete', $extended);
        $ipn = open($body, $headers, $extended)->ipn;
        $this->assertSame(['PREAUTH_COMPLETE', ''], [$ipn->command, $ipn->originalReqId]);
        $this->assertSame($headers['paybell-original-transaction'], $ipn->originalId);
        [$body, $headers] = sample('settlement', $extended);
        $this->assertSame('VND', open($body, $headers, $extended)->ipn->currency);
        $both = [...SAMPLE_KEYS, 'fields' => ['specification', 'extended']];
        foreach ([[$extended, SAMPLE_KEYS, 'SALE'], [SAMPLE_KEYS, $extended, null]] as [$sent, $other, $command]) {
            [$body, $headers] = sample('sale', $sent);
            $this->assertSame('wrong_fields', $this->codeOf(fn() => open($body, $headers, $other)));
            $this->assertSame($command, open($body, $headers, $both)->ipn->command);
        }
    }

    public function testAnUnknownFieldIsKept(): void
    {
        $whole = ['signing' => ['mode' => 'whole']];
        [$body, $headers] = sample('sale', [...SAMPLE_KEYS, ...$whole, 'fields' => 'extended']);
        $received = open($body, $headers, [...SAMPLE_KEYS, ...$whole]);
        $this->assertNull($received->ipn->command);
        $this->assertSame('SALE', $received->wire->command);
    }

    public function testTheTextOfEveryRefusalIsTheSame(): void
    {
        [$body, $headers] = sample();
        $cases = [
            'webhook_signature' => [strtr($body, 'A', 'B'), $headers, SAMPLE_KEYS],
            'missing_headers' => [$body, [], SAMPLE_KEYS],
            'wrong_cipher' => [$body, $headers, [...SAMPLE_KEYS, 'cipher' => 'jwe']],
            'wrong_encoding' => [$body, $headers, [...SAMPLE_KEYS, 'encoding' => 'hex']],
            'wrong_signing' => [$body, $headers, [...SAMPLE_KEYS, 'signing' => ['mode' => 'whole']]],
            'decryption' => [$body, $headers, [...SAMPLE_KEYS, 'encryptionKey' => [self::NEW]]],
            'too_large' => [str_repeat('x', BODY_BYTES_MAX + 1), $headers, SAMPLE_KEYS],
            'empty_body' => ['', $headers, SAMPLE_KEYS],
            'compressed_body' => ["\x1f\x8b\x08\x00", $headers, SAMPLE_KEYS],
            'rewritten_body' => [json_encode(json_decode($body), JSON_PRETTY_PRINT), $headers, SAMPLE_KEYS],
        ];
        foreach ($cases as $code => $given) {
            $this->assertSame($code, $this->codeOf(function () use ($given): void {
                try {
                    open(...$given);
                } catch (Refused $refused) {
                    $this->assertSame('The IPN is not authentic.', $refused->getMessage());
                    throw $refused;
                }
            }));
        }
    }

    public function testAWrongKeyIsNamedButNeverShown(): void
    {
        $cases = [
            [['signingKey' => ''], 'missing_key'],
            [['signingKey' => []], 'missing_key'],
            [['signingKey' => 'QUJD'], 'key_length'],
            [['signingKey' => ['QUJD']], 'key_length'],
            [['signingKey' => str_repeat('é!', 22)], 'key_not_base64'],
            [['webhookSecret' => SAMPLE_KEYS['signingKey']], 'no_whsec_prefix'],
            [['signingKey' => SAMPLE_KEYS['encryptionKey']], 'shared_key'],
            [['cipher' => 'aes-128'], 'wrong_option'],
            [['cipher' => ['jwe']], 'wrong_option'],
            [['signingKey' => null], 'missing_key'],
            [['signingKey' => [[]]], 'missing_key'],
            [['signing' => 'whole'], 'wrong_option'],
            [['fields' => []], 'wrong_option'],
        ];
        foreach ($cases as [$change, $code]) {
            try {
                Keys::of([...SAMPLE_KEYS, ...$change]);
                $this->fail($code);
            } catch (PaybellError $error) {
                $this->assertSame($code, $error->getCode());
                foreach (SAMPLE_KEYS as $key) {
                    $this->assertStringNotContainsString($key, $error->getMessage());
                }
            }
        }
    }

    public function testAChangedFileIsReadAgainAndABrokenOneLeavesTheKeys(): void
    {
        $path = "$this->folder/paybell.json";
        file_put_contents($path, json_encode(SAMPLE_KEYS));
        $keys = new KeyFile($path);
        [$body, $headers] = sample('sale', [...SAMPLE_KEYS, 'encryptionKey' => [self::NEW]]);
        $this->assertSame('decryption', $this->codeOf(fn() => open($body, $headers, $keys)));
        $versions = [['id' => '1', 'key' => SAMPLE_KEYS['encryptionKey']], self::NEW];
        file_put_contents($path, json_encode([...SAMPLE_KEYS, 'encryptionKey' => $versions]));
        $this->assertSame('2', open($body, $headers, $keys)->keyId);
        file_put_contents($path, json_encode([...SAMPLE_KEYS, 'encryptionKey' => [['id' => 2] + self::NEW]]));
        $this->assertSame('2', open($body, $headers, $keys)->keyId);
        file_put_contents($path, '{');
        $this->assertSame('2', open($body, $headers, $keys)->keyId);
        $this->assertStringContainsString('the keys stay as they were', file_get_contents($this->log));
        unlink($path);
        $this->assertSame('2', open($body, $headers, $keys)->keyId);
        $this->assertSame('wrong_option', $this->codeOf(fn() => new KeyFile($path)));
    }

    public function testFilesOfOlderShapesAreReadAndRewrittenWithAWarning(): void
    {
        [$path, $rotation] = ["$this->folder/paybell.json", "$this->folder/rotation.json"];
        $lists = ['signingKeys' => [SAMPLE_KEYS['signingKey']], 'webhookSecrets' => [SAMPLE_KEYS['webhookSecret']]];
        $encryption = [['id' => '', 'key' => SAMPLE_KEYS['encryptionKey']]];
        file_put_contents($path, json_encode(['cipher' => 'jwe', 'encryptionKeys' => $encryption, ...$lists]));
        chmod($path, 0640);
        $times = ['activeFrom' => '2026-01-01T00:00:00Z', 'expiresOld' => '2026-01-02T00:00:00Z'];
        $secret = ['kind' => 'encryptionKey', 'secret' => self::NEW['key'], 'id' => '2', ...$times];
        file_put_contents($rotation, json_encode($secret));
        $versions = (new KeyFile($path, $rotation))->current()->versions['encryptionKey'];
        $this->assertSame(['', '2'], array_column($versions, 0));
        $this->assertSame(2, substr_count(file_get_contents($this->log), 'and is rewritten'));
        $again = json_decode(file_get_contents($path), true);
        $this->assertSame([['key' => SAMPLE_KEYS['signingKey']]], $again['signingKey']);
        $this->assertArrayNotHasKey('signingKeys', $again);
        $this->assertSame(0640, fileperms($path) & 0777);
        $expected = ['encryptionKey' => [[...self::NEW, ...$times]]];
        $this->assertEquals($expected, json_decode(file_get_contents($rotation), true));
        $rotated = Keys::of([...SAMPLE_KEYS, 'apiKey' => 'pb_old'], ['kind' => 'apiKey', 'secret' => 'pb_new']);
        $this->assertSame('pb_new', $rotated->agreed['apiKey']);
    }

    public function testTheAnswerIs2xxOnlyWhenTheFunctionHasReturned(): void
    {
        [$body, $headers, $ipn] = sample();
        $seen = [];
        $stores = new Callback(SAMPLE_KEYS, function (Received $received) use (&$seen): void {
            $seen[] = $received->ipn->id;
        });
        $fails = new Callback(SAMPLE_KEYS, fn() => throw new \Error('the database is away'));
        $ask = function (Callback $callback, string $method, string $body, array $headers): array {
            $request = new ServerRequest($method, 'https://shop.example/ipn', $headers, $body);
            $response = (new Handler($callback, new Psr17Factory()))->handle($request);
            $this->assertSame($callback->statusOf($method, $body, $headers), $response->getStatusCode());
            return [$response->getStatusCode(), $response->getHeaderLine('Allow'), (string) $response->getBody()];
        };
        $this->assertSame([204, '', ''], $ask($stores, 'POST', $body, $headers));
        $this->assertSame([400, '', ''], $ask($stores, 'POST', $body, []));
        $this->assertSame([405, 'POST', ''], $ask($stores, 'GET', '', []));
        $this->assertSame([413, '', ''], $ask($stores, 'POST', str_repeat('x', BODY_BYTES_MAX + 1), []));
        $this->assertSame([500, '', ''], $ask($fails, 'POST', $body, $headers));
        $this->assertStringContainsString('the database is away', file_get_contents($this->log));
        $this->assertSame([$ipn['id'], $ipn['id']], $seen);
    }

    /**
     * @param list<string> $settings of PHP
     * @param array<string, string> $expected the status, by the query that says what the callback's function does
     */
    private function postToScript(array $settings, array $expected): void
    {
        [$body, $headers] = sample();
        file_put_contents("$this->folder/paybell.json", json_encode(SAMPLE_KEYS));
        $lines = array_map(fn(string $name) => "$name: $headers[$name]", array_keys($headers));
        $post = ['method' => 'POST', 'header' => $lines, 'content' => $body, 'ignore_errors' => true];
        $how = array_merge(...array_map(fn(string $one) => ['-d', $one], ['output_buffering=0', ...$settings]));
        $this->start(__DIR__ . '/callback.php', $how, function (string $url) use ($post, $expected): void {
            foreach ($expected as $query => $status) {
                $answer = file_get_contents("$url/?$query", false, stream_context_create(['http' => $post]));
                $this->assertSame(['', $status], [$answer, substr($http_response_header[0], 9, 3)], $query);
            }
        });
    }

    public function testALimitForWhichPhpWouldAnswer200IsRefused(): void
    {
        foreach (['8M' => '500', '16M' => '204', '0' => '204'] as $limit => $status) {
            $this->postToScript(['display_errors=1', "post_max_size=$limit"], ['' => $status]);
        }
        $this->assertStringContainsString('post_max_size = 16M', file_get_contents("$this->folder/out"));
    }

    public function testAFunctionThatEndsTheScriptHasNotReturned(): void
    {
        $expected = ['echo' => '204', 'exit' => '500', 'fatal' => '500'];
        foreach (['0', '1', 'stderr'] as $display) {
            $this->postToScript(["display_errors=$display", 'post_max_size=16M', 'memory_limit=64M'], $expected);
        }
    }

    public function testTheExampleAnswers500WithoutItsKeys(): void
    {
        mkdir("$this->folder/vendor");
        symlink(getenv('PAYBELL_AUTOLOAD'), "$this->folder/vendor/autoload.php");
        $example = dirname(__DIR__) . '/examples/receiver.php';
        $this->start($example, ['-d', 'display_errors=1'], function (string $url): void {
            file_get_contents($url, false, stream_context_create(['http' => ['ignore_errors' => true]]));
            $this->assertSame('500', substr($http_response_header[0], 9, 3));
        });
    }

    /** @param list<array{int, mixed}> $answers */
    private function serve(array $answers, callable $use): array
    {
        foreach ($answers as $at => $answer) {
            file_put_contents("$this->folder/$at.json", json_encode($answer));
        }
        $this->start(__DIR__ . '/service.php', [], function (string $url) use ($use): void {
            $use([...SAMPLE_KEYS, 'baseUrl' => $url, 'apiKey' => 'pb_x']);
        });
        return file("$this->folder/asked", FILE_IGNORE_NEW_LINES);
    }

    /** @param list<string> $how */
    private function start(string $script, array $how, callable $use): void
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $port = explode(':', stream_socket_get_name($listener, false))[1];
        fclose($listener);
        $command = [PHP_BINARY, ...$how, '-S', "127.0.0.1:$port", $script];
        $files = [1 => ['file', "$this->folder/out", 'a'], 2 => ['pipe', 'w']];
        $service = proc_open($command, $files, $pipes, $this->folder);
        while (!str_contains($line = (string) fgets($pipes[2]), 'started')) {
            if (str_contains($line, 'Address already in use')) { // Another program was faster.
                proc_close($service);
                $this->start($script, $how, $use);
                return;
            }
            $this->assertFalse(feof($pipes[2]), 'the service ended');
        }
        try {
            $use("http://127.0.0.1:$port");
        } finally {
            stream_set_blocking($pipes[2], false);
            file_put_contents("$this->folder/out", stream_get_contents($pipes[2]), FILE_APPEND);
            proc_terminate($service);
            proc_close($service);
        }
    }

    public function testGivesPageAfterPageUntilNothingIsLeft(): void
    {
        $made = [sample(), sample('settlement')];
        $answers = [];
        foreach ($made as $at => [$body, $headers]) {
            $item = [...json_decode($body, true), 'headers' => $headers];
            $answers[] = [200, ['items' => [$item], 'next' => (string) $at]];
        }
        array_push($answers, ...array_fill(0, 2, [200, ['items' => [], 'next' => '1']]));
        $asked = $this->serve($answers, function (array $keys) use ($made): void {
            $found = [];
            foreach (catchUp('start', $keys) as $cursor => $items) {
                $found[] = [$cursor, array_map(fn(Received $one) => $one->ipn->id, $items)];
            }
            $this->assertSame([['0', [$made[0][2]['id']]], ['1', [$made[1][2]['id']]], ['1', []]], $found);
            $this->assertCount(1, [...catchUp(null, $keys, 5, 30)]);
        });
        $this->assertSame('/v1/notifications?limit=100&after=0 Bearer pb_x', $asked[1]);
        $this->assertSame('/v1/notifications?limit=5&wait=30 Bearer pb_x', $asked[3]);
    }

    public function testTheServicesCodeAndTheRemedyArePassedOn(): void
    {
        $expired = ['code' => 'cursor_expired', 'detail' => 'It is gone.', 'remedy' => 'Reconcile.'];
        $refused = ['items' => [['data' => 'AAAA', 'headers' => []]], 'next' => '1'];
        $answers = [[410, $expired], [502, '?'], [302, ''], [200, $refused]];
        $asked = $this->serve($answers, function (array $keys): void {
            foreach (['cursor_expired', 'not_paybell', 'not_paybell', 'missing_headers'] as $code) {
                $this->assertSame($code, $this->codeOf(fn() => catchUp('old', $keys)->current()));
            }
        });
        $this->assertCount(4, $asked, 'a redirection was followed');
    }

    public function testTheApiKeyIsNotSentInTheClear(): void
    {
        foreach (['http://paybell.example', 'http://localhost.example'] as $baseUrl) {
            $keys = [...SAMPLE_KEYS, 'baseUrl' => $baseUrl, 'apiKey' => 'pb_x'];
            $this->assertSame('wrong_option', $this->codeOf(fn() => catchUp(null, $keys)->current()));
        }
        $away = [...SAMPLE_KEYS, 'baseUrl' => 'http://127.0.0.1:1', 'apiKey' => 'pb_x'];
        $this->assertSame('no_answer', $this->codeOf(fn() => catchUp(null, $away)->current()));
    }
}

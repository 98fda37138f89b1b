# frozen_string_literal: true

# Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.
#
#   bundle install
#   bundle exec ruby receiver.rb agreement.json  # listens on PORT, or 8080; stores in the folder inbox
#   ruby vectors.rb ../../vectors.json           # runs the test vectors

require "fileutils"
require "json"
require "openssl"
require "tempfile"

# Receiver.new is a Rack application: `run Receiver.new(agreement)`, or `mount` it in Rails.
class Receiver
  FRESHNESS_SECONDS = 300
  BODY_BYTES_MAX = 16 * 1024 * 1024

  # The tables of the specification, section 2. After a slash: a second name of the field.
  CARD = %w[
    aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme currency
    deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName
    merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime
    transaction_type signature
  ].freeze
  SETTLEMENT = %w[
    batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId saleQuantity saleTotalAmount
    status tid totalAmount transaction_time transaction_type voidQuantity voidTotalAmount settlementList signature
  ].freeze
  ENTRY = %w[reqId/reqID refNo].freeze
  SIGNED = {
    "card" => %w[aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid mid traceNo
                 batchNo],
    "settlement" => %w[batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount totalAmount tid mid]
  }.freeze

  # A message that is not authentic or not as agreed. The message is for your log, never for the sender.
  class Refused < StandardError; end

  # JSON.parse keeps the last one of two equal keys; this refuses them.
  class UniqueKeys < Hash
    def []=(name, value)
      raise Refused, "a key appears twice" if key?(name)

      super
    end
  end

  # agreed: what was agreed with the operator, as agreement.json has it. Several keys are the versions of a rotation.
  def initialize(agreed)
    @cipher, @encoding, @signing = agreed.values_at("cipher", "encoding", "signing")
    @encryption_keys = agreed["encryptionKeys"].map { |one| [one["id"], key(one["key"])] }
    @signing_keys = agreed["signingKeys"].map { |one| key(one) }
    @webhook_secrets = agreed["webhookSecrets"].map { |one| key(one.delete_prefix("whsec_")) }
  end

  # The IPN by the tables' names, or Refused. body: the bytes as they came. headers: by their names in lower case.
  def verify(body, headers, now)
    check_headers(body, headers, now)
    envelope = parse(body)
    refuse "the body is not {data}" unless envelope.keys == ["data"] && envelope["data"].is_a?(String)
    named, *sealed = take_apart(envelope["data"])
    refused = Refused.new("no key has this kid")
    @encryption_keys.each do |id, key|
      next unless named.nil? || ["", named].include?(id)

      # A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
      return check_content(decrypt(key, *sealed))
    rescue Refused => e
      refused = e
    end
    raise refused
  end

  # Rack: the status alone. The sender learns nothing more.
  def call(env)
    return [405, { "allow" => "POST" }, []] unless env["REQUEST_METHOD"] == "POST"

    body = env["rack.input"].read(BODY_BYTES_MAX + 1) || ""
    return [413, {}, []] if body.bytesize > BODY_BYTES_MAX

    names = %w[webhook-id webhook-timestamp webhook-signature]
    ipn = verify(body, names.to_h { |name| [name, env["HTTP_#{name.upcase.tr("-", "_")}"]] }, Time.now.to_i)
    is_new = store_once(ipn)
    warn "#{ipn["transaction_type"]} #{ipn["id"]}, new: #{is_new}"
    [204, {}, []]
  rescue Refused => e
    warn "refused: #{e.message}"
    [400, {}, []]
  rescue StandardError => e # Answered 500, so that the IPN comes again.
    warn "not stored: #{e.message}"
    [500, {}, []]
  end

  private

  def refuse(why) = raise(Refused, why)

  # Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends.
  def check_headers(body, headers, now)
    id, timestamp, signature = %w[id timestamp signature].map { |name| headers["webhook-#{name}"].to_s.b }
    refuse "webhook-id or webhook-timestamp is missing or malformed" unless
      id.match?(/\A[^.\s]{1,256}\z/) && timestamp.match?(/\A[0-9]{1,12}\z/)
    is_right = @webhook_secrets.any? do |secret|
      mac = OpenSSL::HMAC.digest("SHA256", secret, "#{id}.#{timestamp}.".b + body.b)
      signature.split(/ /).any? { |entry| OpenSSL.secure_compare("v1,#{[mac].pack("m0")}", entry) }
    end
    refuse "webhook-signature does not match the body" unless is_right
    refuse "webhook-timestamp is too far from this clock" if (now - timestamp.to_i).abs > FRESHNESS_SECONDS
  end

  # The id of the key where the message names it, the IV, the ciphertext, its tag, the additional authenticated data.
  def take_apart(data)
    if @cipher == "jwe"
      header, encrypted_key, *rest = data.split(".", -1)
      refuse "the JWE does not have the five parts of dir" unless encrypted_key == "" && rest.size == 3
      iv, sealed, tag = rest.map { |part| decode(part, "base64url") }
      fields = parse(decode(header, "base64url"))
      is_usual = fields["alg"] == "dir" && fields["enc"] == "A256GCM" && fields.key?("kid")
      refuse "the JWE is not as agreed" if !is_usual || fields.key?("zip") || fields.key?("crit")
      parts = [fields["kid"], iv, sealed, tag, header]
    else
      raw = decode(data, @encoding)
      refuse "data is too short" if raw.bytesize < 32
      parts = @cipher == "aes-256-cbc" ? [nil, raw[0, 16], raw[16..]] : [nil, raw[0, 12], raw[12...-16], raw[-16..], ""]
    end
    # OpenSSL itself would accept a tag of four bytes.
    refuse "another tag" unless @cipher == "aes-256-cbc" || parts[3].bytesize == 16
    parts
  end

  def decrypt(key, iv, sealed, tag = nil, authenticated = nil)
    cipher = OpenSSL::Cipher.new(tag ? "aes-256-gcm" : "aes-256-cbc").decrypt
    cipher.key = key
    cipher.iv = iv
    if tag
      cipher.auth_tag = tag
      cipher.auth_data = authenticated
    end
    cipher.update(sealed) + cipher.final
  rescue OpenSSL::Cipher::CipherError, ArgumentError
    refuse "decryption failed"
  end

  def check_content(plain)
    wire = parse(plain)
    settles = wire.key?("saleQuantity") || wire["transaction_type"] == "SETTLE" && wire.key?("settlementList")
    ipn = by_table_names(wire, settles ? SETTLEMENT : CARD)
    text = if @signing["mode"] == "whole"
             canonical(wire.except("signature"))
           else
             kind = settles ? "settlement" : "card"
             @signing.fetch(kind, SIGNED[kind]).map { |name| "#{name}=#{ipn[name]}" }.join("&")
           end
    is_right = @signing_keys.any? do |key|
      OpenSSL.secure_compare(OpenSSL::HMAC.hexdigest("SHA256", key, text), ipn["signature"].downcase)
    end
    refuse "signature does not match the signed string" unless is_right
    settles ? ipn : ipn.merge("cardScheme" => ipn["cardScheme"].upcase)
  end

  def by_table_names(wire, table)
    table.to_h do |field|
      names = field.split("/")
      found = wire.values_at(*names & wire.keys)
      refuse "#{names.first} appears under two names" if found.size > 1
      is_list = names.first == "settlementList"
      value = found.first || (is_list ? [] : "")
      refuse "#{names.first} has another type" unless value.is_a?(is_list ? Array : String)
      refuse "settlementList is not a list of objects" unless !is_list || value.all?(Hash)
      [names.first, is_list ? value.map { |entry| by_table_names(entry, ENTRY) } : value]
    end
  end

  STRING = /"(?:[^"\\]++|\\.)*+"/m
  ESCAPE = %r{\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])\h{4}|u[dD][89abAB]\h\h\\u[dD][c-fC-F]\h\h)}

  # One JSON object in UTF-8 whose scalars are strings, without duplicate keys or lone surrogates.
  def parse(raw)
    text = raw.dup.force_encoding(Encoding::UTF_8)
    refuse "not UTF-8" unless text.valid_encoding?
    # JSON.parse accepts comments and unknown escapes.
    refuse "something beside objects, lists and strings" unless text.gsub(STRING, "").match?(/\A[\s{}\[\]:,]*\z/)
    refuse "an escape that JSON does not have" if text.gsub(ESCAPE, "").include?("\\")
    value = JSON.parse(text, object_class: UniqueKeys, max_nesting: 64)
    value.is_a?(Hash) ? value : refuse("not a JSON object")
  rescue JSON::ParserError
    refuse "not JSON"
  end

  # RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, no needless escapes.
  def canonical(value)
    case value
    when Array then "[#{value.map { |item| canonical(item) }.join(",")}]"
    when Hash
      pairs = value.sort_by { |name, _| name.encode(Encoding::UTF_16BE).b }
      "{#{pairs.map { |name, item| "#{canonical(name)}:#{canonical(item)}" }.join(",")}}"
    else JSON.generate(value)
    end
  end

  # The bytes, if the text is exactly what an encoder writes: decoders accept other alphabets and padding.
  def decode(text, encoding)
    if encoding == "hex"
      refuse "not hexadecimal" unless text.match?(/\A(?:\h\h)*\z/)
      return [text].pack("H*")
    end
    padded = encoding == "base64" ? text : text.tr("-_", "+/") + ("=" * (-text.size % 4))
    raw = padded.unpack1("m0")
    again = encoding == "base64" ? [raw].pack("m0") : [raw].pack("m0").tr("+/", "-_").delete("=")
    again == text ? raw : refuse("not #{encoding}")
  rescue ArgumentError
    refuse "not #{encoding}"
  end

  def key(text)
    raw = decode(text, "base64")
    raw.bytesize == 32 ? raw : raise(ArgumentError, "a key is the base64 of 32 bytes")
  end

  # Returns whether it was new. A table with a unique key on the id, written with the rest of your work, is better.
  def store_once(ipn)
    raise "the id is no file name" unless ipn["id"].match?(/\A[0-9A-Za-z-]{1,64}\z/)

    Tempfile.create(".new", "inbox") do |file|
      file.write(JSON.generate(ipn))
      file.fsync
      File.link(file.path, "inbox/#{ipn["id"]}.json") # Of two at once, one fails.
      true
    rescue Errno::EEXIST
      false
    end
  end
end

if $PROGRAM_NAME == __FILE__
  require "puma"
  require "puma/server"
  FileUtils.mkdir_p("inbox", mode: 0o700)
  server = Puma::Server.new(Receiver.new(JSON.parse(File.read(ARGV[0]))))
  listener = server.add_tcp_listener("127.0.0.1", ENV.fetch("PORT", "8080").to_i)
  thread = server.run
  warn "listening on http://127.0.0.1:#{listener.addr[1]}/ipn"
  thread.join
end

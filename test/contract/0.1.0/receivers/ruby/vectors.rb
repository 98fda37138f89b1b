# frozen_string_literal: true

# Runs the test vectors on receiver.rb: ruby vectors.rb ../../vectors.json

require_relative "receiver"

passed = JSON.parse(File.read(ARGV[0], encoding: "UTF-8"))["vectors"].map do |vector|
  found = begin
    Receiver.new(vector).verify(vector["body"], vector["headers"], vector["nowSeconds"])
  rescue Receiver::Refused
    nil
  end
  puts "#{found == vector["ipn"] ? "ok  " : "FAIL"} #{vector["name"]}"
  found == vector["ipn"]
end
exit passed.all?

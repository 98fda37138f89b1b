package example.paybell;

import static java.lang.System.Logger.Level.WARNING;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Keys in files, such as the one of the registration and those of rotations. They are read again when one changes. If
 * they cannot be read then, the keys stay as they were, with a warning in the log.
 */
public final class KeyFile implements Supplier<Keys> {
    private static final System.Logger LOG = System.getLogger("paybell");

    private final List<Path> paths;
    private String stamp;
    private Keys keys;

    /** Reads the files, and rewrites those of older shapes, with a warning in the log. */
    public KeyFile(Path... paths) throws IOException {
        this.paths = List.of(paths);
        stamp = stamp();
        keys = read();
    }

    @Override
    public synchronized Keys get() {
        String now = stamp();
        if (now.equals(stamp)) return keys;
        try {
            keys = read();
            // That from before reading: a change in between is read the next time. After a failure it stays, because a
            // file gets the right to be read without a change of its times.
            stamp = now;
        } catch (IOException | PaybellException error) {
            LOG.log(WARNING, "The keys stay as they were: " + error.getMessage());
        }
        return keys;
    }

    private String stamp() {
        var stamp = new StringBuilder();
        for (Path path : paths) {
            try {
                var file = Files.readAttributes(path, BasicFileAttributes.class);
                stamp.append(file.lastModifiedTime()).append(file.size()).append(file.fileKey());
            } catch (IOException error) {
                stamp.append("missing");
            }
        }
        return stamp.toString();
    }

    private Keys read() throws IOException {
        var files = new ArrayList<Map<String, Object>>();
        for (Path path : paths) {
            var written = Keys.parse(path.toString(), Files.readString(path));
            var content = modern(written);
            if (!content.equals(written)) rewrite(path, content);
            files.add(content);
        }
        return Keys.of(files);
    }

    /** The same in today's shape: {@code encryptionKeys} and {@code {kind, secret}} are those of older files. */
    static Map<String, Object> modern(Map<String, Object> written) {
        var content = new LinkedHashMap<>(written);
        if (content.remove("kind") instanceof String kind && content.remove("secret") instanceof String secret) {
            content.put("key", secret);
            return Map.of(kind, kind.equals("apiKey") ? secret : List.of(content));
        }
        content.putAll(written);
        for (String kind : Keys.KINDS)
            if (content.remove(kind + "s") instanceof List<?> versions) {
                var those = versions.stream().map(one -> one instanceof String ? Map.of("key", one) : one);
                content.put(kind, those.toList());
            }
        return content;
    }

    private static void rewrite(Path path, Map<String, Object> content) throws IOException {
        Path file = path.toRealPath();
        Path temporary = null;
        try {
            temporary = Files.createTempFile(file.getParent(), ".keys-", ""); // 0600
            byte[] text = Contract.JSON.writerWithDefaultPrettyPrinter().writeValueAsBytes(content);
            Files.write(temporary, text, StandardOpenOption.WRITE, StandardOpenOption.SYNC);
            Files.setPosixFilePermissions(temporary, Files.getPosixFilePermissions(file));
            Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
            LOG.log(WARNING, path + " was in an older shape, and is rewritten");
        } catch (IOException | UnsupportedOperationException error) {
            LOG.log(WARNING, path + " is in an older shape, and cannot be rewritten: " + error);
        } finally {
            if (temporary != null) Files.deleteIfExists(temporary);
        }
    }
}

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.datasketches.hll.HllSketch;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/** Distinct users of each page and minute with Kafka Streams: an in-memory store with its changelog, an HLL of 2^12. */
public class DistinctUsers {
  @JsonIgnoreProperties(ignoreUnknown = true)
  public static class Event {
    public String page;
    public String user;
    public long ts;
  }

  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final ObjectReader READER = MAPPER.readerFor(Event.class);

  private static Serde<Event> eventSerde() {
    return Serdes.serdeFrom(
        (topic, event) -> {
          try {
            return MAPPER.writeValueAsBytes(event);
          } catch (IOException failed) {
            throw new UncheckedIOException(failed);
          }
        },
        (topic, bytes) -> {
          try {
            return READER.readValue(bytes);
          } catch (IOException failed) {
            throw new UncheckedIOException(failed);
          }
        });
  }

  private static Serde<HllSketch> sketchSerde() {
    return Serdes.serdeFrom(
        (topic, sketch) -> sketch == null ? null : sketch.toCompactByteArray(),
        (topic, bytes) -> bytes == null ? null : HllSketch.heapify(bytes));
  }

  private static Properties settings() {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, System.getenv("GROUP"));
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("BOOTSTRAP"));
    settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getenv("STATE"));
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put("auto.offset.reset", "earliest");
    // Closed windows are looked for only while a record is processed, and at most once a second: behind the last record
    // of a run the last windows would never come out. 0 looks at every record, which took no more CPU.
    settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
    return settings;
  }

  public static void main(String[] arguments) throws InterruptedException {
    StreamsBuilder builder = new StreamsBuilder();
    Materialized<String, HllSketch, WindowStore<Bytes, byte[]>> store =
        Materialized.<String, HllSketch, WindowStore<Bytes, byte[]>>as("distinct")
            .withKeySerde(Serdes.String())
            .withValueSerde(sketchSerde())
            .withStoreType(Materialized.StoreType.IN_MEMORY);
    Consumed<String, Event> consumed =
        Consumed.with(Serdes.String(), eventSerde())
            .withTimestampExtractor((record, previous) -> ((Event) record.value()).ts);
    builder.stream(System.getenv("TOPIC"), consumed)
        .groupByKey(Grouped.with(Serdes.String(), eventSerde()))
        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(5)))
        .emitStrategy(EmitStrategy.onWindowClose())
        .aggregate(
            () -> new HllSketch(12),
            (page, event, sketch) -> {
              sketch.update(event.user);
              return sketch;
            },
            store)
        .toStream()
        .map(
            (window, sketch) -> {
              long distinct = Math.round(sketch.getEstimate());
              String answer =
                  "{\"page\":\"" + window.key() + "\",\"start\":" + window.window().start() + ",\"n\":" + distinct + "}";
              return KeyValue.pair(window.key(), answer);
            })
        .to(System.getenv("OUT"), Produced.with(Serdes.String(), Serdes.String()));

    KafkaStreams streams = new KafkaStreams(builder.build(), settings());
    CountDownLatch stopped = new CountDownLatch(1);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  streams.close(Duration.ofSeconds(30));
                  stopped.countDown();
                }));
    streams.start();
    stopped.await();
  }
}

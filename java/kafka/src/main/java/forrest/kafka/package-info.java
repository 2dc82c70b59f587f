/** State stores of Kafka Streams over Forrest. */
package forrest.kafka;

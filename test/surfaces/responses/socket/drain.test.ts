import { expect, test } from 'bun:test'
import { createOutbox } from '#surfaces/responses/socket/outbox.ts'
import { eventually } from '#test/support/eventually.ts'

/** A client that reads nothing until its socket buffer is full. */
function openWire() {
  const wire = {
    sent: [] as string[],
    bufferedBytes: 0,
    isOver: false,
    isPaused: false,
    getBufferedAmount: () => wire.bufferedBytes,
    sendText(text: string) {
      wire.sent.push(text)
      wire.bufferedBytes += text.length
      return -1
    },
    cork: <T>(write: (wire: never) => T) => write(undefined as never),
    terminate() {
      wire.isOver = true
    },
    close() {},
    pause() {},
    resume() {},
  }
  return wire
}

const exchange = { addBytesOut() {} }

test('sending continues if the buffer was flushed without a drain event', async () => {
  const wire = openWire()
  const outbox = createOutbox(wire, { readerStallMs: 60_000, exchange })
  const written = outbox.write(['one', 'two'])
  expect(wire.sent).toEqual(['one'])
  wire.bufferedBytes = 0
  await eventually('the next one is sent', () => wire.sent.length === 2)
  wire.bufferedBytes = 0
  expect(await written).toBe(1)
  outbox.closed()
})

test('a client that reads nothing is disconnected', async () => {
  const wire = openWire()
  const outbox = createOutbox(wire, { readerStallMs: 20, exchange })
  const written = outbox.write(['one', 'two'])
  await eventually('it is let go', () => wire.isOver)
  outbox.closed()
  expect(await written).toBe(0)
  expect(wire.sent).toEqual(['one'])
})

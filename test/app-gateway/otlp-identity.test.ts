import { expect, test } from 'bun:test'
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { identifyJson, identifyProtobuf } from '#app-gateway/otlp-identity.ts'
import { AppError } from '#lib/errors.ts'
import { createDice } from '#test/support/dice.ts'

const identity = { 'sluice.user.id': 'user-1', 'sluice.user.groups': 'a,b' }

/** An export of the encoder of OpenTelemetry. */
function exportWith(attributes: Record<string, string>): Uint8Array {
  const metrics = {
    resource: { attributes },
    scopeMetrics: [
      {
        scope: { name: 'app', version: '1' },
        metrics: [
          {
            descriptor: { name: 'tokens', description: 'd'.repeat(200), unit: '1' },
            aggregationTemporality: 0,
            dataPointType: 3,
            isMonotonic: true,
            dataPoints: [
              { attributes: { model: 'm' }, startTime: [1, 2], endTime: [3, 4], value: 5.5 },
            ],
          },
        ],
      },
    ],
  }
  return ProtobufMetricsSerializer.serializeRequest(metrics as never) ?? new Uint8Array()
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test.each([
  ['attributes of its own', { 'service.name': 'cli' }],
  ['no attributes', {}],
])('a resource with %s gets the identity as the encoder would write it', (_, attributes) => {
  const identified = identifyProtobuf(exportWith(attributes), identity)
  expect(hex(identified)).toBe(hex(exportWith({ ...identity, ...attributes })))
})

test('an exporter cannot choose its identity', () => {
  const spoofed = { 'sluice.user.id': 'admin', 'service.name': 'cli', 'sluice.x': 'y' }
  const identified = identifyProtobuf(exportWith(spoofed), identity)
  expect(hex(identified)).toBe(hex(exportWith({ ...identity, 'service.name': 'cli' })))
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } })
  const body = {
    resourceLogs: [
      {
        resource: { attributes: [attribute('sluice.user.id', 'admin'), attribute('a', 'b')] },
        scopeLogs: [],
      },
      { scopeLogs: [] },
    ],
  }
  const own = [attribute('sluice.user.id', 'user-1'), attribute('sluice.user.groups', 'a,b')]
  expect(identifyJson(body, identity)).toEqual({
    resourceLogs: [
      { resource: { attributes: [attribute('a', 'b'), ...own] }, scopeLogs: [] },
      { resource: { attributes: own }, scopeLogs: [] },
    ],
  })
})

test('a second resource field of an item, which decoders merge, cannot bring one either', () => {
  const field = (content: Uint8Array) => Buffer.concat([Uint8Array.of(10, content.length), content])
  const text = (value: string) => field(Buffer.from(value))
  const spoofed = field(field(Buffer.concat([text('sluice.user.id'), Buffer.from([0x12, 0])])))
  const identified = identifyProtobuf(field(Buffer.concat([spoofed, spoofed])), identity)
  expect(Buffer.from(identified).toString().split('sluice.user.id')).toHaveLength(2)
})

test('bytes that are no protobuf are refused, or copied', () => {
  const valid = exportWith({ 'service.name': 'cli' })
  let refused = 0
  for (let seed = 0; seed < 2_000; seed++) {
    const dice = createDice(seed)
    const bytes = Uint8Array.from(valid)
    for (let n = 0; n <= dice.upTo(4); n++) bytes[dice.upTo(bytes.length)] = dice.upTo(256)
    const cut = bytes.subarray(0, dice.upTo(bytes.length + 1))
    try {
      identifyProtobuf(cut, identity)
    } catch (error) {
      expect(error).toBeInstanceOf(AppError)
      refused++
    }
  }
  expect(refused).toBeGreaterThan(100)
})

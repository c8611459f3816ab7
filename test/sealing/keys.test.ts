import { expect, test } from 'bun:test'
import { type Database, openDatabase } from '#db/client.ts'
import { createSealer, type Sealer } from '#sealing/sealer.ts'
import { createTestPlace, serverUrl } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const configured = 'a configured secret, thirty-two or more'
const other = 'another configured secret, as long too'

const open = (sealer: Sealer, sealed: string) => sealer.open('reasoning', 'alice', sealed)
const seal = (sealer: Sealer) => sealer.seal('reasoning', 'alice', 'x')

/** Two processes on one database; an embedded database is opened once. */
async function withReplicas(work: (one: Database, two: Database) => Promise<void>): Promise<void> {
  const place = await createTestPlace()
  const start = () => openDatabase({ ...place, connectionsMax: 2, log: quietLog })
  const one = await start()
  const two = serverUrl === undefined ? one : await start()
  try {
    await work(one, two)
  } finally {
    await one.close()
    await two.close()
    await place.remove()
  }
}

test('without configured keys, concurrent starts agree on one secret', async () => {
  await withReplicas(async (one, two) => {
    const starts = Array.from({ length: 8 }, (_, at) =>
      createSealer({ sealKeys: undefined, database: at % 2 === 0 ? one : two }),
    )
    const sealers = await Promise.all(starts)
    for (const maker of sealers) {
      const sealed = seal(maker)
      expect(sealers.map((sealer) => open(sealer, sealed))).toEqual(sealers.map(() => 'x'))
    }
  })
})

test('a later start decrypts texts of an earlier one, with or without keys', async () => {
  await withReplicas(async (database) => {
    const unconfigured = await createSealer({ sealKeys: undefined, database })
    const kept = seal(unconfigured)
    const again = await createSealer({ sealKeys: undefined, database })
    expect(open(again, kept)).toBe('x')
    const keyed = await createSealer({ sealKeys: ` ${configured} , ${other}`, database })
    expect(open(keyed, kept)).toBe('x')
    const sealed = seal(keyed)
    expect(open(await createSealer({ sealKeys: `${other},${configured}`, database }), sealed)).toBe(
      'x',
    )
    expect(() => open(again, sealed)).toThrow('cannot be decrypted')
  })
})

test('configured keys store nothing in the database', async () => {
  await withReplicas(async (database) => {
    const keyed = await createSealer({ sealKeys: configured, database })
    const sealed = seal(keyed)
    const unconfigured = await createSealer({ sealKeys: undefined, database })
    expect(() => open(unconfigured, sealed)).toThrow('cannot be decrypted')
    // Its secret was generated only now.
    expect(() => open(keyed, seal(unconfigured))).toThrow('cannot be decrypted')
  })
})

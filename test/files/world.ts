import { afterAll, beforeAll } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type FileGateway, type Person, startFileGateway } from '#test/support/file-gateway.ts'

/** One gateway for all tests of a file, and its users. */
export const ann: Person = { subject: 'ann', groups: ['users'] }
export const bob: Person = { subject: 'bob', groups: ['users', 'staff'] }
export const cy: Person = { subject: 'cy', groups: ['users'] }

export function useFileGateway(options?: Parameters<typeof startFileGateway>[1]) {
  const world: { gateway: FileGateway; database: TestDatabase } = Object.create(null)
  beforeAll(async () => {
    world.database = await openTestDatabase()
    world.gateway = await startFileGateway(world.database, options)
  })
  afterAll(async () => {
    await world.gateway.stop()
    await world.database.close()
  })
  return world
}

let names = 0

/** A name that is unique to the test. */
export function fresh(name: string): string {
  names += 1
  return `${name} ${names}`
}

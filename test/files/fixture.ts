import { afterAll, beforeAll } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type FileGateway, type Person, startFileGateway } from '#test/support/file-gateway.ts'

/** One gateway for all tests of a file, and its users. */
export const ann: Person = { subject: 'ann', groups: ['users'] }
export const bob: Person = { subject: 'bob', groups: ['users', 'staff'] }
export const cy: Person = { subject: 'cy', groups: ['users'] }

export function useFileGateway(options?: Parameters<typeof startFileGateway>[1]) {
  const fixture: { gateway: FileGateway; database: TestDatabase } = Object.create(null)
  beforeAll(async () => {
    fixture.database = await openTestDatabase()
    fixture.gateway = await startFileGateway(fixture.database, options)
  })
  afterAll(async () => {
    await fixture.gateway.stop()
    await fixture.database.close()
  })
  return fixture
}

let names = 0

/** A name that is unique to the test. */
export function fresh(name: string): string {
  names += 1
  return `${name} ${names}`
}

import type { S3Settings } from '#storage/s3.ts'

/** The real S3 server that the tests use, if there is one: `http://key:secret@host:port/bucket`. */
const given = process.env['SLUICE_TEST_S3_URL']

export const s3Settings: S3Settings | undefined = given === undefined ? undefined : readUrl(given)

function readUrl(text: string): S3Settings {
  const { origin, username, password, pathname, protocol, host } = new URL(text)
  return {
    endpoint: origin === 'null' ? `${protocol}//${host}` : origin,
    accessKeyId: decodeURIComponent(username),
    secretAccessKey: decodeURIComponent(password),
    bucket: pathname.slice(1),
    region: 'us-east-1',
    // Runs that share the server do not share their objects.
    prefix: `${crypto.randomUUID()}/`,
    requestMs: 30_000,
  }
}

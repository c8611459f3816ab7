import type { AssetName, Assets } from './assets.ts'

type Page = {
  readonly title: string
  readonly styles: readonly AssetName[]
  readonly scripts: readonly AssetName[]
}

export const swaggerPage: Page = {
  title: 'Sluice API',
  styles: ['swagger-ui.css'],
  scripts: ['swagger-ui.js', 'open-document.js', 'start-swagger.js'],
}

export const scalarPage: Page = {
  title: 'Sluice API reference',
  styles: [],
  scripts: ['scalar.js', 'open-document.js', 'start-scalar.js'],
}

const nonceBytes = 16
const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Cpath d='M0 1h8v1H0zm0 2h2v5H0zm6 0h2v5H6zM3 3h2v2H3z'/%3E%3C/svg%3E"

/** An empty page that its scripts fill; it holds no credential and nothing of this deployment. */
export async function renderPage({ title, styles, scripts }: Page, assets: Assets) {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(nonceBytes))).toString('base64')
  const links = await Promise.all(styles.map(assets.pathOf))
  const sources = await Promise.all(scripts.map(assets.pathOf))
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${icon}">
${links.map((path) => `<link rel="stylesheet" href="${path}">`).join('\n')}
<style>
body { margin: 0 }
#credential { max-width: 30rem; margin: 20vh auto; padding: 0 1rem; font: 1rem/1.5 system-ui; display: grid; gap: 1rem }
#credential label { display: grid }
#credential :is(input, button) { font: inherit; padding: 0.5rem }
</style>
</head>
<body>
<div id="reference"></div>
<noscript>This page is made by scripts; the document itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
${sources.map((path) => `<script src="${path}" nonce="${nonce}"></script>`).join('\n')}
</body>
</html>
`
  return new Response(html, { headers: pageHeaders(nonce) })
}

/** Only our own scripts run, and they can connect only to this host, regardless of the packages. */
function pageHeaders(nonce: string) {
  const policy = {
    'default-src': "'none'",
    'script-src': `'nonce-${nonce}'`,
    // Both packages add style elements and attributes while they run.
    'style-src': "'self' 'unsafe-inline'",
    // Pictures in answers are shown from memory.
    'img-src': "'self' data: blob:",
    'media-src': 'blob:',
    'font-src': "'self' data:",
    'connect-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
  }
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': Object.entries(policy)
      .map((entry) => entry.join(' '))
      .join('; '),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-store',
  }
}

import { describe, expect, test } from 'bun:test'
import { sanitizeSvg } from '#branding/logo/svg/sanitize.ts'

const namespace = 'http://www.w3.org/2000/svg'

test('an SVG of Illustrator is cleaned', () => {
  const { svg, sanitized } = sanitizeSvg(`<?xml version="1.0" encoding="utf-8"?>
<!-- Generator: Adobe Illustrator 16.0.0, SVG Export Plug-In . SVG Version: 6.00 Build 0)  -->
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd" [
  <!ENTITY ns_extend "http://ns.adobe.com/Extensibility/1.0/">
  <!ENTITY ns_ai "http://ns.adobe.com/AdobeIllustrator/10.0/">
  <!ENTITY ns_svg "http://www.w3.org/2000/svg">
  <!ENTITY ns_xlink "http://www.w3.org/1999/xlink">
]>
<svg version="1.1" xmlns:x="&ns_extend;" xmlns:i="&ns_ai;" xmlns="&ns_svg;" xmlns:xlink="&ns_xlink;"
  width="100px" height="50px" viewBox="0 0 100 50" i:viewOrigin="0 0" xml:space="preserve">
  <metadata><x:sfw/></metadata>
  <switch><g i:extraneous="self"><path fill="#FF0000" d="M0,0h100v50H0z"/></g></switch>
  <i:pgf id="pgf"/>
</svg>`)
  expect(svg).toBe(
    `<svg xmlns="${namespace}" version="1.1" width="100px" height="50px" viewBox="0 0 100 50"><g><path fill="#FF0000" d="M0,0h100v50H0z"/></g></svg>`,
  )
  expect(sanitized).toContain('<i:pgf>')
})

test.each([
  ['', 'x'],
  ['PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg11.dtd"', 'x'],
  ['SYSTEM "svg.dtd"', 'x'],
])('a DOCTYPE without entities is dropped: %s', (doctype, text) => {
  const { svg } = sanitizeSvg(
    `<!DOCTYPE svg ${doctype}><svg xmlns="${namespace}"><text>${text}</text></svg>`,
  )
  expect(svg).toBe(`<svg xmlns="${namespace}"><text>x</text></svg>`)
})

describe('the text of &e; is', () => {
  test.each([
    ['its value', '<!ENTITY e "a b">', 'a b'],
    ['that of an earlier entity', '<!ENTITY d "a"><!ENTITY e "&d;&d;">', 'aa'],
    ['its characters', `<!ENTITY e '&#65;&#x42;'>`, 'AB'],
    ['the first declaration', '<!ENTITY e "a"><!ENTITY e "b">', 'a'],
    ['empty for itself', '<!ENTITY e "&e;">', ''],
    ['empty for a circle', '<!ENTITY d "&e;"><!ENTITY e "&d;">', ''],
    ['empty for a file', '<!ENTITY e SYSTEM "file:///etc/passwd">', ''],
    ['empty for an address', '<!ENTITY e PUBLIC "p" "http://169.254.169.254/">', ''],
    ['empty for markup', '<!ENTITY e "<script>alert(1)</script>">', ''],
    ['empty for escaped markup', '<!ENTITY e "&lt;script&gt;&#60;b&#62;">', ''],
    ['its value after a comment', '<!-- <!ENTITY e "b"> --><!ENTITY e "a">', 'a'],
    [
      'its value beside a parameter entity',
      '<!ENTITY % p SYSTEM "//evil.example">%p;<!ENTITY e "a">',
      'a',
    ],
    ['its value, also of a name that objects have', '<!ENTITY e "&constructor;a">', 'a'],
  ])('%s', (_, subset, text) => {
    const { svg } = sanitizeSvg(
      `<!DOCTYPE svg [${subset}]><svg xmlns="${namespace}"><text>&e;</text></svg>`,
    )
    expect(svg.replace('<text/>', '<text></text>')).toContain(`<text>${text}</text>`)
  })
})

test('an entity does not smuggle a value past the list of allowed ones', () => {
  const { svg, sanitized } = sanitizeSvg(
    `<!DOCTYPE svg [<!ENTITY e "url(http://evil.example/)">]><svg xmlns="${namespace}"><rect fill="&e;" onload="&e;"/></svg>`,
  )
  expect(svg).toBe(`<svg xmlns="${namespace}"><rect/></svg>`)
  expect(sanitized).toContain('fill of <rect>')
})

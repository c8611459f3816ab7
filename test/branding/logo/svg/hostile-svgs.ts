/** Attacks that have worked on other sanitisers, each with the removals that are reported. */

type Attack = readonly [name: string, content: string, sanitized: readonly string[]]

const xhtml = 'xmlns="http://www.w3.org/1999/xhtml"'

export const attacks: readonly Attack[] = [
  ['a script', '<script>alert(1)</script>', ['<script>']],
  ['a script in CDATA', '<script><![CDATA[alert(1)]]></script>', ['<script>']],
  ['an external script', '<script href="https://evil.example/x.js"/>', ['<script>']],
  [
    'a prefixed script',
    '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
    ['<x:script>'],
  ],
  ['an HTML script', `<script ${xhtml}>alert(1)</script>`, ['<script>']],
  ['an upper-case script', '<SCRIPT>alert(1)</SCRIPT>', ['<SCRIPT>']],
  ['a handler', '<rect width="1" height="1" onclick="alert(1)"/>', ['onclick of <rect>']],
  ['a mixed-case handler', '<rect OnLoad="alert(1)"/>', ['OnLoad of <rect>']],
  [
    'a prefixed handler',
    '<rect x:onload="alert(1)" xmlns:x="http://www.w3.org/2000/svg"/>',
    ['x:onload of <rect>'],
  ],
  [
    'foreignObject',
    `<foreignObject width="9" height="9"><body ${xhtml}><img src="x" onerror="alert(1)"/></body></foreignObject>`,
    ['<foreignObject>'],
  ],
  [
    'HTML in the SVG',
    `<h:iframe xmlns:h="http://www.w3.org/1999/xhtml" src="//e.example"/>`,
    ['<h:iframe>'],
  ],
  ['an image', '<image href="https://evil.example/x.png" width="1" height="1"/>', ['<image>']],
  ['an xlink image', '<image xlink:href="//evil.example/x.png"/>', ['<image>']],
  ['an image in a data URL', '<image href="data:image/svg+xml;base64,PHN2Zz4="/>', ['<image>']],
  ['use of another document', '<use href="https://evil.example/x.svg#a"/>', ['href of <use>']],
  ['xlink use of another document', '<use xlink:href="x.svg#a"/>', ['href of <use>']],
  ['use of a data URL', '<use href="data:image/svg+xml,&lt;svg/&gt;#a"/>', ['href of <use>']],
  ['use of a script URL', '<use href="&#106;avascript:alert(1)"/>', ['href of <use>']],
  ['an external pattern', '<pattern href="//evil.example/x#p"/>', ['href of <pattern>']],
  ['a link', '<a href="javascript:alert(1)"><rect width="3"/></a>', ['<a>']],
  [
    'a link with an encoded scheme',
    '<a xlink:href=" java&#10;script:alert(1)"><rect width="3"/></a>',
    ['<a>'],
  ],
  ['an animation', '<rect><animate attributeName="x" to="1"/></rect>', ['<animate>']],
  [
    'an animation that sets a link',
    '<g><set attributeName="href" to="javascript:alert(1)"/></g>',
    ['<set>'],
  ],
  ['a handler of an animation', '<animate onbegin="alert(1)" attributeName="x"/>', ['<animate>']],
  ['an external paint', '<rect fill="url(https://evil.example/#a)"/>', ['fill of <rect>']],
  ['a paint of another file', '<rect fill="url(x.svg#a)"/>', ['fill of <rect>']],
  [
    'a paint with CSS escapes',
    '<rect fill="\\75rl(https://evil.example/#a)"/>',
    ['fill of <rect>'],
  ],
  ['a paint with a second URL', '<rect fill="url(#a) url(//evil.example)"/>', ['fill of <rect>']],
  [
    'a colour that loads an image',
    '<rect fill="image-set(\'//evil.example\' 1x)"/>',
    ['fill of <rect>'],
  ],
  ['an external filter', '<rect filter="url(\'//evil.example/f#x\')"/>', ['filter of <rect>']],
  ['an external mask', '<rect mask="url(&quot;//evil.example/m#x&quot;)"/>', ['mask of <rect>']],
  [
    'an image in a filter',
    '<filter id="f"><feImage href="//evil.example"/></filter>',
    ['<feImage>'],
  ],
  ['a cursor', '<rect cursor="url(//evil.example/c.cur)"/>', ['cursor of <rect>']],
  ['a marker', '<path marker-end="url(#m)" d="M0 0"/>', ['marker-end of <path>']],
  [
    'a style that loads a paint',
    '<rect style="fill:url(//evil.example/#a)"/>',
    ['fill in style of <rect>'],
  ],
  [
    'a style that loads an image',
    '<rect style="background-image:url(//evil.example)"/>',
    ['background-image in style of <rect>'],
  ],
  [
    'a style with escapes and comments',
    '<rect style="fi/**/ll:red;fill:u\\72l(//evil.example)"/>',
    ['fi ll in style of <rect>', 'fill in style of <rect>'],
  ],
  ['an import', '<style>@import url(//evil.example/x.css);</style>', ['style rule @import']],
  [
    'an import in CDATA',
    '<style><![CDATA[@import "//evil.example";]]></style>',
    ['style rule @import'],
  ],
  [
    'an external font',
    '<style>@font-face{font-family:x;src:url(//evil.example/f)}</style>',
    ['style rule @font-face'],
  ],
  [
    'a rule that loads paints',
    '<style>rect{fill:url(//evil.example/#a);stroke:url( //evil.example )}</style><rect/>',
    ['fill in style', 'stroke in style'],
  ],
  [
    'a rule that leaks content',
    '<style>text[id^="a"]{fill:red}</style>',
    ['style rule text[id^="a"]'],
  ],
  [
    'a nested rule',
    '<style>rect{fill:red;&amp; g{fill:url(//evil.example)}}</style>',
    ['a nested style rule'],
  ],
  ['an unclosed rule', '<style>rect{fill:url(//evil.example</style>', ['fill in style']],
  ['an unclosed comment', '<style>/* /* rect{fill:red}</style>', []],
  [
    'a prefixed style sheet',
    `<h:style xmlns:h="http://www.w3.org/1999/xhtml">x</h:style>`,
    ['<h:style>'],
  ],
  ['a base', '<g xml:base="https://evil.example/"><use href="#a"/></g>', ['xml:base of <g>']],
  ['a handler element', '<handler type="text/ecmascript">alert(1)</handler>', ['<handler>']],
  ['a listener', '<ev:listener xmlns:ev="http://www.w3.org/2001/xml-events"/>', ['<ev:listener>']],
  [
    'XInclude',
    '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>',
    ['<xi:include>'],
  ],
  ['metadata', '<metadata><rdf xmlns="urn:x">me</rdf></metadata>', ['<metadata>']],
  ['a video', '<video href="//evil.example"/>', ['<video>']],
  [
    'a text along a path',
    '<text><textPath href="//evil.example#p">x</textPath></text>',
    ['<textPath>'],
  ],
  [
    'a switch',
    '<switch><foreignObject/><g><script/></g></switch>',
    ['<switch>', '<foreignObject>', '<script>'],
  ],
  ['text that looks like a script', '<text>&lt;script&gt;alert(1)&lt;/script&gt;</text>', []],
  ['a title that closes itself', '<title>&lt;/title&gt;&lt;script&gt;</title>', []],
  [
    'a processing instruction',
    '<?xml-stylesheet href="//evil.example/x.css"?>',
    ['<?xml-stylesheet?>'],
  ],
  ['an id that closes its quotes', '<g id="a&quot; onload=&quot;alert(1)"/>', ['id of <g>']],
  ['a path that closes its quotes', '<path d="M0 0&quot;/&gt;&lt;script&gt;"/>', ['d of <path>']],
  ['a transform with a URL', '<g transform="url(//evil.example)"/>', ['transform of <g>']],
  [
    'a font with a URL',
    '<text font-family="url(//evil.example)">x</text>',
    ['font-family of <text>'],
  ],
  ['a variable', '<g fill="var(--x, url(//evil.example))"/>', ['fill of <g>']],
]

/** SVGs that are refused as a whole. */
export const invalidSvgs: readonly (readonly [name: string, svg: string])[] = (() => {
  const svg = 'xmlns="http://www.w3.org/2000/svg"'
  return [
    [
      'entities that expand to billions',
      `<!DOCTYPE svg [<!ENTITY a0 "aaaaaaaaaa">${Array.from({ length: 9 }, (_, at) => `<!ENTITY a${at + 1} "${`&a${at};`.repeat(10)}">`).join('')}]><svg ${svg}><text>&a9;</text></svg>`,
    ],
    [
      'a long entity that is often referred to',
      `<!DOCTYPE svg [<!ENTITY a "${'a'.repeat(4_000)}">]><svg ${svg}><text>${'&a;'.repeat(1_000)}</text></svg>`,
    ],
    [
      'a long entity in attributes',
      `<!DOCTYPE svg [<!ENTITY a "${'a'.repeat(4_000)}">]><svg ${svg}>${'<g id="&a;"/>'.repeat(1_000)}</svg>`,
    ],
    [
      'a thousand entities',
      `<!DOCTYPE svg [${Array.from({ length: 1_000 }, (_, at) => `<!ENTITY a${at} "a">`).join('')}]><svg ${svg}/>`,
    ],
    [
      'a namespace that an entity hides',
      `<!DOCTYPE svg [<!ENTITY ns "http://www.w3.org/1999/xhtml">]><svg ${svg}><x:g/></svg>`,
    ],
    ['an undeclared entity', `<svg ${svg}><text>&nbsp;</text></svg>`],
    ['an unclosed tag', `<svg ${svg}><g></svg>`],
    ['a missing end', `<svg ${svg}><g/>`],
    ['two roots', `<svg ${svg}/><svg ${svg}/>`],
    ['text after the root', `<svg ${svg}/>x`],
    ['a duplicate attribute', `<svg ${svg} id="a" id="b"/>`],
    ['an undeclared prefix', `<svg ${svg}><x:g/></svg>`],
    ['a character outside XML', `<svg ${svg}><text>\u0001</text></svg>`],
    ['NUL', `<svg ${svg}><text>\0</text></svg>`],
    ['a reference to NUL', `<svg ${svg}><text>&#0;</text></svg>`],
    ['use of an ancestor', `<svg ${svg}><g id="a"><use href="#a"/></g></svg>`],
    [
      'circular use',
      `<svg ${svg}><g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g></svg>`,
    ],
    [
      'a pattern filled with itself',
      `<svg ${svg}><pattern id="p"><rect fill="url(#p)"/></pattern></svg>`,
    ],
  ]
})()

export const otherDocuments: readonly (readonly [name: string, content: string])[] = [
  ['nothing', ''],
  ['spaces', '  \n '],
  ['a word', 'logo'],
  ['HTML', '<!DOCTYPE html><html><body><svg xmlns="http://www.w3.org/2000/svg"/></body></html>'],
  ['HTML without a DOCTYPE', '<html><script>alert(1)</script></html>'],
  ['other XML', '<feed xmlns="http://www.w3.org/2005/Atom"/>'],
  ['svg without a namespace', '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg>'],
  ['svg in another namespace', '<svg xmlns="http://www.w3.org/1999/xhtml"/>'],
  ['another SVG element as root', '<g xmlns="http://www.w3.org/2000/svg"/>'],
  ['an unclosed comment', '<!-- <svg xmlns="http://www.w3.org/2000/svg"/>'],
  ['a GIF', 'GIF89a\u0001\u0000\u0001\u0000'],
  ['a PDF', '%PDF-1.7'],
  ['JSON', '{"svg": true}'],
]

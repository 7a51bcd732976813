/**
 * Only for the build: with it, all that the main entry exports is reached from two entries, so it stands in chunks, and `index.js`
 * holds nothing but names. A bundler drops the chunks that a program does not use, and can't drop parts of one.
 */
export * from '../../src/index.js'

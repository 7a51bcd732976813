// Two copies of the package in one process: an error made by either is known to both.
import { createRequire } from 'node:module'
import { isDrainableError as esmKnows } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

const require = createRequire(import.meta.url)
const { isDrainableError: cjsKnows } = require('drainable')
const { haproxyRuntime: cjsRuntime } = require('drainable/haproxy-runtime')

function failure(factory) {
  try {
    factory({ socket: '/nowhere', typo: true })
  } catch (error) {
    return error
  }
}

const known = [cjsKnows(failure(haproxyRuntime)), esmKnows(failure(cjsRuntime))]
console.log(known.every(Boolean) ? 'same error' : `a stranger: ${JSON.stringify(known)}`)

# Writes OUT, the C++ file with the packed files of the page (src/server/page_assets.h), from the sources in ROOT/web.
#
# npm builds them, in ROOT/build/web: once for all presets, in a folder named by the digest of the sources. Where that
# folder is there already, npm is not needed. Where it is not and npm cannot make it (it is not installed, its packages
# cannot be had), OUT says that there is no page, and nothing fails.
#
# With -DDIGEST_ONLY=ON: prints the digest and does nothing.
cmake_minimum_required(VERSION 3.25)

set(web ${ROOT}/web)
set(built ${ROOT}/build/web)
file(GLOB_RECURSE sources RELATIVE ${web} ${web}/src/*)
list(APPEND sources package.json package-lock.json tsconfig.json vite.config.ts index.html pack.mjs)
list(SORT sources)
set(digests "")
foreach(source IN LISTS sources)
  file(SHA256 ${web}/${source} digest)
  string(APPEND digests "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
if(DIGEST_ONLY)
  message(${digest})
  return()
endif()

set(made ${built}/${digest}/page_assets.cc)
set(why "")

# step(command...): runs it where the page is built; `why` says what went wrong, if anything did.
macro(step)
  if(NOT why)
    # A registry that does not answer must not hold the build up for long.
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${built}/making TIMEOUT 240
                    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(NOT status EQUAL 0)
      string(SUBSTRING "${said}" 0 600 said)
      string(REPLACE ";" " " command "${ARGN}")
      set(why "${command}: ${status}\n${said}")
    endif()
  endif()
endmacro()

file(MAKE_DIRECTORY ${built})
file(LOCK ${built}/lock TIMEOUT 600)
if(NOT EXISTS ${made})
  find_program(npm npm)
  if(npm)
    file(REMOVE_RECURSE ${built}/making/src)
    foreach(source IN LISTS sources)
      get_filename_component(folder ${source} DIRECTORY)
      file(COPY ${web}/${source} DESTINATION ${built}/making/${folder})
    endforeach()
    step(${npm} ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=20000)
    step(${npm} run --silent build)
    if(NOT why)
      # What was built of older sources is of no use any more.
      file(GLOB old LIST_DIRECTORIES true ${built}/*)
      list(FILTER old EXCLUDE REGEX "/(making|lock)$")
      if(old)
        file(REMOVE_RECURSE ${old})
      endif()
      file(MAKE_DIRECTORY ${built}/${digest})
      file(RENAME ${built}/making/dist/page_assets.cc ${made})
    endif()
  else()
    set(why "npm is not installed")
  endif()
endif()
if(why)
  message(WARNING "dibs is built without its page (docs/page.md): ${why}")
  file(WRITE ${OUT} "#include \"server/page_assets.h\"

namespace dibs::server {

std::span<const PageAsset> page_assets() { return {}; }

}  // namespace dibs::server
")
else()
  configure_file(${made} ${OUT} COPYONLY)
  file(TOUCH ${OUT})
endif()

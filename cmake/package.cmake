# What `cmake --install` puts down for drivers built elsewhere: find_package(dibs) gives them the target dibs::driver.
# Static libraries, in the order a linker wants them; headers keep their folders below include/dibs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(DIBS_PACKAGE_LIBRARIES driver client calls api_resource api_schema net rpc cdi json runtime base proto)
set(DIBS_PACKAGE_FOLDERS driver client calls net rpc cdi json runtime base)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dibs)

foreach(library IN LISTS DIBS_PACKAGE_LIBRARIES)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME dibs_${library})
endforeach()
install(TARGETS ${DIBS_PACKAGE_LIBRARIES} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT driver)
foreach(folder IN LISTS DIBS_PACKAGE_FOLDERS)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dibs COMPONENT driver
          FILES_MATCHING PATTERN "*.h" PATTERN "test_*.h" EXCLUDE PATTERN testing EXCLUDE)
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dibsConfig.cmake.in ${PROJECT_BINARY_DIR}/dibsConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dibsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dibsConfig.cmake ${PROJECT_BINARY_DIR}/dibsConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT driver)
